// SPDX-License-Identifier: Apache-2.0

// Package jsonlist splits lists of the Kubernetes API while they arrive. A list contains
// any number of objects, each as large as the API server accepts. Only one of them is in
// memory at a time if the caller only inspects it.
package jsonlist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNoList means that the input is JSON, but not a list of the Kubernetes API.
var errNoList = errors.New("the answer is no list")

// Each calls do for each item of a list, in order. It returns the list's metadata after
// the end of the list. do may use the item until it returns. Each stops at an error of
// do, or if the list is incomplete.
func Each(list io.Reader, do func(item json.RawMessage) error) (metav1.ListMeta, error) {
	var metadata metav1.ListMeta
	decoder := json.NewDecoder(list)
	err := expect(decoder, json.Delim('{'))
	for err == nil && decoder.More() {
		err = member(decoder, &metadata, do)
	}
	if err == nil {
		err = expect(decoder, json.Delim('}'))
	}
	if err != nil {
		return metav1.ListMeta{}, fmt.Errorf("read a list: %w", err)
	}
	return metadata, nil
}

func member(decoder *json.Decoder, metadata *metav1.ListMeta, do func(json.RawMessage) error) error {
	name, err := decoder.Token()
	switch {
	case err != nil:
		return err //nolint:wrapcheck // Each says what was read
	case name == "metadata":
		return decoder.Decode(metadata) //nolint:wrapcheck // likewise
	case name == "items":
		return items(decoder, do)
	}
	return decoder.Decode(new(json.RawMessage)) //nolint:wrapcheck // likewise
}

func items(decoder *json.Decoder, do func(json.RawMessage) error) error {
	if err := expect(decoder, json.Delim('[')); err != nil {
		return err
	}
	var item json.RawMessage
	for decoder.More() {
		if err := decoder.Decode(&item); err != nil {
			return err //nolint:wrapcheck // Each says what was read
		}
		if err := do(item); err != nil {
			return err
		}
	}
	return expect(decoder, json.Delim(']'))
}

func expect(decoder *json.Decoder, delimiter json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return err //nolint:wrapcheck // Each says what was read
	}
	if token != delimiter {
		return errNoList
	}
	return nil
}
