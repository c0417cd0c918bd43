// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// Case 40.
func TestCommandLineNamesTheContextWhoseCredentialsAreRefused(t *testing.T) {
	s := newEnv(t)
	s.Create(s.NamespaceObject(), s.Rollout())
	paul := s.CommandLine(s.Namespace+":paul", masters)
	own := paul.Credentials()
	paul.AddContext("staging", &clientcmdapi.AuthInfo{Token: "expired"})
	paul.AddContext("production", asking(t, map[string]string{"token": "wrong"}))
	paul.AddContext("testing", asking(t, map[string]string{
		"clientCertificateData": string(own.ClientCertificateData), "clientKeyData": string(own.ClientKeyData),
	}))
	const refused = "the API server does not accept your credentials: log in again, or choose another context with --context\n"
	for _, verb := range []string{"get", "explain"} {
		in := func(context string) env.Answer { return paul.Run(verb, s.Name, "--context", context) }
		if answer := in("testing"); answer.Code != 0 || answer.Stderr != prompt {
			t.Errorf("%s does not ask once, and then answer: %+v", verb, answer)
		}
		want := env.Answer{Stderr: "✗ context staging: " + refused, Code: 1}
		if diff := cmp.Diff(want, in("staging")); diff != "" {
			t.Errorf("%s with expired credentials (-want +got):\n%s", verb, diff)
		}
		// client-go asks again when an answer was not accepted.
		asked := in("production")
		wasAsked := strings.HasPrefix(asked.Stderr, prompt)
		asked.Stderr = strings.ReplaceAll(asked.Stderr, prompt, "")
		want.Stderr = "✗ context production: " + refused
		if diff := cmp.Diff(want, asked); diff != "" || !wasAsked {
			t.Errorf("%s with a wrong password (-want +got):\n%s", verb, diff)
		}
	}
	if answer := paul.Run("version", "--client", "--context", "production"); answer.Code != 0 || answer.Stderr != "" {
		t.Errorf("version --client has used the credentials: %+v", answer)
	}
}

// prompt is what the program for credentials asks.
const prompt = "Password: "

// asking returns credentials by a program that asks on the terminal.
func asking(t *testing.T, status map[string]string) *clientcmdapi.AuthInfo {
	t.Helper()
	folder := t.TempDir()
	answer, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
	if err != nil {
		t.Fatal(err)
	}
	program, credentials := filepath.Join(folder, "login"), filepath.Join(folder, "credentials")
	script := "#!/bin/sh\nprintf '" + prompt + "' >&2\ncat " + credentials + "\n"
	if err := errors.Join(os.WriteFile(credentials, answer, 0o600), os.WriteFile(program, []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	return &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: program, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}}
}
