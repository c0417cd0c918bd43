// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// privateHost is a registry to which the controller has a login.
const privateHost = "private.example.com"

// ownLogin returns a folder with the Docker config of the controller.
func ownLogin() (string, error) {
	folder, err := os.MkdirTemp("", "login-")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	config := `{"auths":{"` + privateHost + `":{"username":"controller","password":"topsecret"}}}`
	return folder, os.WriteFile(filepath.Join(folder, "config.json"), []byte(config), 0o600)
}

// collector is a server of a tenant: a proxy in place of all registries, which asks for a
// login; and a registry that leads each upload to another server. It counts what the
// controller sends.
type collector struct {
	mu      sync.Mutex
	asked   map[string]int // by method and host
	logins  []string
	uploads string // where they are led to
}

func (c *collector) open(t *testing.T) *httptest.Server {
	t.Helper()
	c.asked = map[string]int{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server
}

// ServeHTTP implements http.Handler.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.HasPrefix(r.UserAgent(), "rollout-controller") { // and not Flux
		c.asked[r.Method+" "+r.Host]++
	}
	if login := r.Header.Get("Authorization"); login != "" {
		c.logins = append(c.logins, login)
	}
	switch {
	case r.Method == http.MethodConnect: // the client tries plain HTTP then
		w.WriteHeader(http.StatusBadGateway)
	case c.uploads == "":
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodPost:
		w.Header().Set("Location", c.uploads)
		w.WriteHeader(http.StatusAccepted)
	case r.URL.Path != "/v2/":
		w.WriteHeader(http.StatusNotFound)
	}
}

// await waits until the controller has asked for something some times.
func (c *collector) await(t *testing.T, what string, times int) {
	t.Helper()
	env.Eventually(t, what, func() (bool, string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.asked[what] >= times, fmt.Sprint(c.asked)
	})
}

func TestLoginIsAskedForByProxiesAndUploadsAreLedElsewhere(t *testing.T) {
	x, a := begin(t, "has images of a registry to which the controller has a login looked up through its own proxy, and answers reports with the address of another server"), newAbuser(t)
	proxy, registry, victim := &collector{}, &collector{}, &collector{}
	a.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "proxy"}, StringData: map[string]string{"address": proxy.open(t).URL},
	})
	victimURL := victim.open(t).URL
	registry.uploads = strings.Replace(victimURL, "127.0.0.1", "localhost", 1) + "/admin/delete?everything=yes"
	to := strings.TrimPrefix(registry.open(t).URL, "http://")

	const images = 16
	for i := range images {
		a.looksUp(fmt.Sprint("private-", i), privateHost)
	}
	a.looksUp("public", "public.example.com")
	reporting := a.Another("reporting")
	a.makes(reporting.ImageRepository(to), reporting.ImagePolicy(">=1.0.0"), reporting.Rollout(),
		scenario.Reporting(reporting.Environment("staging"), to+"/promotions"))
	proxy.await(t, "GET public.example.com", 1)
	registry.await(t, "POST "+to, 1)
	x.passes(images, "the login was sent nowhere, and nothing was sent to the other server")
	for what, c := range map[string]*collector{"proxy": proxy, "registry": registry, "other server": victim} {
		c.mu.Lock()
		if len(c.logins) > 0 {
			t.Errorf("the %s got the logins %v", what, c.logins)
		}
		c.mu.Unlock()
	}
	victim.mu.Lock()
	defer victim.mu.Unlock()
	if len(victim.asked) > 0 {
		t.Errorf("the other server got %v", victim.asked)
	}
}

// looksUp has the controller look up an image through the tenant's proxy.
func (a abuser) looksUp(name, host string) {
	a.T.Helper()
	other := a.Another(name)
	images, policy := other.ImageRepository(host), other.ImagePolicy(">=1.0.0")
	images.Spec.ProxySecretRef, images.Spec.Insecure = &meta.LocalObjectReference{Name: "proxy"}, true
	policy.Spec.Suspend, policy.Spec.DigestReflectionPolicy = true, "" // Flux itself cannot scan there
	a.makes(images, policy, other.Rollout())
	a.says(policy, func() { policy.Status.LatestRef = &imagev1.ImageRef{Name: images.Spec.Image, Tag: "1.0.0"} })
}
