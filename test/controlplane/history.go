// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is one state of an object, as etcd stored it.
type State struct {
	// Revision is the revision of etcd, and therefore the resourceVersion. It orders the
	// states of all objects of all kinds.
	Revision uint64
	// Object is the object as it was stored, with its resourceVersion. It is the last
	// state if the object was deleted.
	Object *unstructured.Unstructured
	// Deleted is true if the object was deleted.
	Deleted bool
}

// History returns, in order, every state that any custom resource has had since the
// control plane was started. It asks etcd, which keeps everything here. Therefore outages
// of the API server or of etcd itself hide nothing.
func (c *ControlPlane) History(ctx context.Context) ([]State, error) {
	newest, err := c.newestRevision(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := map[string]any{"create_request": map[string]any{
		"key": firstKey, "range_end": firstKey, "start_revision": "1", "prev_kv": true,
	}}
	response, err := c.askEtcd(ctx, "/v3/watch", watch)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var states []State
	for decoder := json.NewDecoder(response.Body); ; {
		var answer watchAnswer
		if err := decoder.Decode(&answer); err != nil {
			return nil, fmt.Errorf("read etcd's history: %w", err)
		}
		if answer.Result.Canceled {
			return nil, fmt.Errorf("etcd does not show its history: %s", answer.Result.Reason)
		}
		for _, event := range answer.Result.Events {
			state, err := event.state()
			if err != nil {
				return nil, err
			}
			if state.Revision > newest {
				return states, nil
			}
			if state.Object != nil {
				states = append(states, state)
			}
			if state.Revision == newest {
				return states, nil
			}
		}
	}
}

// firstKey, as both ends of a range, selects all keys.
var firstKey = []byte{0}

// newestRevision writes a key, to have a last event to wait for, and returns its
// revision.
func (c *ControlPlane) newestRevision(ctx context.Context) (uint64, error) {
	response, err := c.askEtcd(ctx, "/v3/kv/put", map[string]any{"key": []byte("/history"), "value": []byte("asked")})
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, fmt.Errorf("read etcd's revision: %w", err)
	}
	return strconv.ParseUint(answer.Header.Revision, 10, 64)
}

func (c *ControlPlane) askEtcd(ctx context.Context, path string, question any) (*http.Response, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("etcd answers %s to %s", response.Status, path)
	}
	return response, nil
}

// watchAnswer is a message of the stream that etcd sends.
type watchAnswer struct {
	Result struct {
		Canceled bool         `json:"canceled"`
		Reason   string       `json:"cancel_reason"`
		Events   []watchEvent `json:"events"`
	} `json:"result"`
}

type watchEvent struct {
	Type   string `json:"type"`
	KV     stored `json:"kv"`
	PrevKV stored `json:"prev_kv"`
}

type stored struct {
	Revision string `json:"mod_revision"`
	Value    []byte `json:"value"`
}

// state reads an event. The Object is nil if the event is not about a custom resource:
// etcd does not store Kubernetes' built-in kinds as JSON.
func (e watchEvent) state() (State, error) {
	revision, err := strconv.ParseUint(e.KV.Revision, 10, 64)
	if err != nil {
		return State{}, fmt.Errorf("read a revision of etcd: %w", err)
	}
	state := State{Revision: revision, Deleted: e.Type == "DELETE"}
	value := e.KV.Value
	if state.Deleted {
		value = e.PrevKV.Value
	}
	if !bytes.HasPrefix(value, []byte("{")) {
		return state, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(value); err != nil {
		return State{}, fmt.Errorf("read an object of etcd: %w", err)
	}
	object.SetResourceVersion(e.KV.Revision)
	state.Object = object
	return state, nil
}
