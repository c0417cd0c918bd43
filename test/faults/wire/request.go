// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"
	"strings"
)

// Request is a request of the controller to the API server.
type Request struct {
	// Verb is one of RBAC's verbs, or get for a request that is not about a resource.
	Verb string
	// Resource is group/resource or group/resource/subresource, or the path of a request
	// that is not about a resource.
	Resource string
	// Namespace and Name of the object, if the request has them.
	Namespace, Name string
	// Write numbers the requests that change something, from 1 on, in the order in which
	// they came. It is 0 for a read.
	Write int
}

// String returns the request as text.
func (r Request) String() string {
	text := r.Verb + " " + r.Resource
	if r.Namespace+r.Name != "" {
		text += " " + strings.Trim(r.Namespace+"/"+r.Name, "/")
	}
	return text
}

// IsEvent reports whether the request is about an event, which controllers send in
// addition to their work.
func (r Request) IsEvent() bool {
	return r.Resource == "/events" || r.Resource == "events.k8s.io/events"
}

// isWrite reports whether the request changes something. An access review is a create
// request that stores nothing.
func (r Request) isWrite() bool {
	if strings.HasPrefix(r.Resource, "authorization.k8s.io/") {
		return false
	}
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// read returns the meaning of an HTTP request to the API server.
func read(r *http.Request) Request {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group string
	switch {
	case segments[0] == "api" && len(segments) > 2:
		segments = segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		group, segments = segments[1], segments[3:]
	default:
		return Request{Verb: "get", Resource: r.URL.Path}
	}
	request := Request{}
	if segments[0] == "namespaces" && len(segments) > 2 {
		request.Namespace, segments = segments[1], segments[2:]
	}
	request.Resource = group + "/" + segments[0]
	if len(segments) > 1 {
		request.Name = segments[1]
	}
	if len(segments) > 2 {
		request.Resource += "/" + segments[2]
	}
	request.Verb = verb(r, request.Name != "")
	return request
}

func verb(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	switch watch := r.URL.Query().Get("watch"); {
	case watch == "true" || watch == "1":
		return "watch"
	case named:
		return "get"
	}
	return "list"
}
