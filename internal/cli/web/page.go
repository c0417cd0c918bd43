// SPDX-License-Identifier: Apache-2.0

package web

import (
	"embed"
	"net/http"
)

// assets are made from web/ by `make web`.
//
//go:embed assets
var assets embed.FS

// addresses are those of the page, which are all the same file: what it shows is up to
// the address.
var addresses = []string{"/{$}", "/pipelines", "/incidents", "/calendar", "/rollouts/{namespace}/{name}"}

// files are those of the page, and what they are.
var files = map[string]string{"index.html": "text/html; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8"}

// page answers with a file, to everybody on this machine: it has nothing of a cluster.
func page(name string) http.HandlerFunc {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded, and a test asks for each
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", files[name])
		_, _ = w.Write(content) // who does not read the answer gets none
	}
}
