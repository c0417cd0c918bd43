// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// auditPolicy makes the API server record the requests of ServiceAccounts, without the
// bodies of requests and responses. It records no other users.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

// Audited is a request of a ServiceAccount in the API server's audit log. A watch has two
// entries: one when it is opened and one when it ends.
type Audited struct {
	// User is the ServiceAccount's full name.
	User string
	// Verb is one of RBAC's verbs.
	Verb string
	// Resource has the form group/resource or group/resource/subresource.
	Resource string
	// Namespace and Name are those of the object, as far as the request has them.
	Namespace, Name string
	// Code is the status code of the response.
	Code int
}

// String formats the request.
func (a Audited) String() string {
	return fmt.Sprintf("%s %s %s/%s", a.Verb, a.Resource, a.Namespace, a.Name)
}

// IsWrite reports whether the request changes something. An access review is a create
// request but stores nothing.
func (a Audited) IsWrite() bool {
	if strings.HasPrefix(a.Resource, "authorization.k8s.io/") {
		return false
	}
	switch a.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

func (c *ControlPlane) auditPolicy() string { return c.dir.file("audit-policy.yaml") }

func (c *ControlPlane) auditLog() string { return c.dir.file("audit.log") }

func (c *ControlPlane) writeAuditPolicy() error {
	if err := os.WriteFile(c.auditPolicy(), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	return nil
}

// Audited returns the requests that users of the group system:serviceaccounts have made
// so far, in order.
func (c *ControlPlane) Audited() ([]Audited, error) {
	file, err := os.Open(c.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	var all []Audited
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, nil // an incomplete last line is not fully written yet
		}
		request, err := auditedIn(line)
		if err != nil {
			return nil, err
		}
		if request.Resource != "" {
			all = append(all, request)
		}
	}
}

// auditedIn reads one event of the audit log. The Resource is empty if the event is not
// about a resource.
func auditedIn(line []byte) (Audited, error) {
	var event struct {
		Verb      string
		User      struct{ Username string }
		ObjectRef struct {
			APIGroup, Resource, Subresource, Namespace, Name string
		}
		ResponseStatus struct{ Code int }
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return Audited{}, fmt.Errorf("read the audit log: %w", err)
	}
	object := event.ObjectRef
	request := Audited{
		User: event.User.Username, Verb: event.Verb, Namespace: object.Namespace, Name: object.Name, Code: event.ResponseStatus.Code,
	}
	if object.Resource != "" {
		request.Resource = strings.TrimSuffix(object.APIGroup+"/"+object.Resource+"/"+object.Subresource, "/")
	}
	return request, nil
}
