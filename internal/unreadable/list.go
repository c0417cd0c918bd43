// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNoList means that the input is JSON, but not a list of the Kubernetes API.
var errNoList = errors.New("the answer is not a list")

// large is the size of an item whose memory is not used again for the next.
const large = 64 << 10

// EachItem calls do for each item of a list of the API while the list arrives, in order. A
// list contains any number of objects, each as large as the API server accepts: only one of
// them is in memory at a time if do only inspects it. do may use the item until it returns.
// EachItem returns the list's metadata after the end of the list. It stops at an error of
// do, or if the list is incomplete.
func EachItem(list io.Reader, do func(item json.RawMessage) error) (metav1.ListMeta, error) {
	r := listReader{from: list, decoder: json.NewDecoder(list)}
	err := r.expect(json.Delim('{'))
	for err == nil && r.decoder.More() {
		err = r.member(do)
	}
	if err == nil {
		err = r.expect(json.Delim('}'))
	}
	if err != nil {
		return metav1.ListMeta{}, fmt.Errorf("read a list: %w", err)
	}
	return r.metadata, nil
}

// listReader reads a list.
type listReader struct {
	from     io.Reader
	decoder  *json.Decoder
	metadata metav1.ListMeta
}

func (r *listReader) member(do func(json.RawMessage) error) error {
	name, err := r.decoder.Token()
	switch {
	case err != nil:
		return err
	case name == "metadata":
		return r.decoder.Decode(&r.metadata)
	case name == "items":
		return r.items(do)
	}
	return r.decoder.Decode(new(json.RawMessage))
}

func (r *listReader) items(do func(json.RawMessage) error) error {
	switch token, err := r.decoder.Token(); {
	case err != nil:
		return err
	case token == nil: // an empty list of metadata
		return nil
	case token != json.Delim('['):
		return errNoList
	}
	var item json.RawMessage
	for r.decoder.More() {
		if err := r.decoder.Decode(&item); err != nil {
			return err
		}
		if err := do(item); err != nil {
			return err
		}
		if cap(item) > large {
			item = nil
			if err := r.renew(); err != nil {
				return err
			}
		}
	}
	return r.expect(json.Delim(']'))
}

// renew goes on with a new decoder, because a decoder keeps the memory of the largest
// item. The new one has to read the beginning of a list first.
func (r *listReader) renew() error {
	ahead, err := io.ReadAll(r.decoder.Buffered())
	if err != nil {
		return err
	}
	r.from = io.MultiReader(strings.NewReader(`{"items":[0`), bytes.NewReader(ahead), r.from)
	r.decoder = json.NewDecoder(r.from)
	for range 4 {
		if _, err := r.decoder.Token(); err != nil {
			return err
		}
	}
	return nil
}

func (r *listReader) expect(delimiter json.Delim) error {
	token, err := r.decoder.Token()
	if err != nil {
		return err
	}
	if token != delimiter {
		return errNoList
	}
	return nil
}
