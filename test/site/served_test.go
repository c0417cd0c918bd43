// SPDX-License-Identifier: Apache-2.0

package site

import (
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// site is a folder of pages that a web server would serve. Addresses of pages have no .html.
type site struct {
	files fs.FS

	mu    sync.Mutex
	asked []string // what was asked for, and is not there
}

func served(folder string) *site { return &site{files: os.DirFS(folder)} }

// fileOf returns the file of an address; empty if there is none.
func (s *site) fileOf(address string) string {
	name := strings.TrimPrefix(address, "/")
	for _, file := range []string{name, name + ".html", path.Join(name, "index.html")} {
		if info, err := fs.Stat(s.files, file); err == nil && !info.IsDir() {
			return file
		}
	}
	return ""
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file := s.fileOf(r.URL.Path)
	if file == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.URL.Path)
		http.NotFound(w, r)
		return
	}
	content, err := fs.ReadFile(s.files, file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kinds[path.Ext(file)])
	_, _ = w.Write(content) // the browser has gone
}

var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
	".woff2": "font/woff2", ".json": "application/json", ".png": "image/png",
}

func (s *site) missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// pages returns the addresses of all pages.
func (s *site) pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(s.files, ".", func(file string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(file, ".html"); ok && name != "404" {
			all = append(all, "/"+strings.TrimSuffix(name, "index"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s *site) read(t *testing.T, page string) string {
	t.Helper()
	content, err := fs.ReadFile(s.files, s.fileOf(page))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var (
	linked = regexp.MustCompile(`<a [^>]*href="([^"]+)"`)
	ids    = regexp.MustCompile(` id="([^"]+)"`)
	shown  = regexp.MustCompile(`<img [^>]*src="([^"]+)"`)
)

// followLinks checks that each link within the site has its page, and its place on it.
func (s *site) followLinks(t *testing.T, pages []string) {
	t.Helper()
	places := map[string][]string{}
	for _, page := range pages {
		for _, id := range ids.FindAllStringSubmatch(s.read(t, page), -1) {
			places[s.fileOf(page)] = append(places[s.fileOf(page)], id[1])
		}
	}
	checked := 0
	for _, page := range pages {
		for _, link := range s.links(t, page) {
			checked++
			file, place := s.leads(page, link)
			if file == "" || place != "" && !slices.Contains(places[file], place) {
				t.Errorf("%s: a link leads nowhere: %s", page, link)
			}
		}
	}
	if checked < 1000 {
		t.Errorf("looked at %d links only", checked)
	}
}

// links returns the links and pictures of a page that stay on the site.
func (s *site) links(t *testing.T, page string) []string {
	t.Helper()
	text := s.read(t, page)
	var all []string
	for _, found := range slices.Concat(linked.FindAllStringSubmatch(text, -1), shown.FindAllStringSubmatch(text, -1)) {
		if !strings.Contains(found[1], ":") {
			all = append(all, found[1])
		}
	}
	return all
}

// leads returns to which file and place a link leads.
func (s *site) leads(page, link string) (file, place string) {
	address, place, _ := strings.Cut(link, "#")
	switch {
	case address == "":
		return s.fileOf(page), place
	case strings.HasPrefix(address, "/"):
		return s.fileOf(address), place
	}
	return s.fileOf(path.Join(path.Dir("/"+s.fileOf(page)), address)), place
}
