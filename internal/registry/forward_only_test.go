// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"

	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
)

const forwardOnly = "com.kuberik.rollout.forward-only"

// forward returns annotations or labels with the mark.
func forward(value string) map[string]string { return map[string]string{forwardOnly: value} }

// marked returns an image with the mark in its annotations.
func marked(value string) v1.Image {
	return mutate.Annotations(labelled(image(nil), nil), forward(value)).(v1.Image)
}

// describing returns an index whose descriptor of another image than that for
// linux/amd64 has the mark.
func describing(value string) v1.ImageIndex {
	index := indexOf(nil, map[string]v1.Image{"linux/amd64": labelled(image(nil), nil)})
	return mutate.AppendManifests(index, mutate.IndexAddendum{Add: image(nil), Descriptor: v1.Descriptor{
		Annotations: forward(value), Platform: &v1.Platform{OS: "linux", Architecture: "arm64"},
	}})
}

func TestWhereTheForwardOnlyMarkIsFound(t *testing.T) {
	plain := labelled(image(map[string]string{"revision": "main"}), nil)
	described := map[string]string{
		"version": "1.0.0", "revision": "main", "created": "2026-03-02T11:00:00Z",
		"source": "https://example.com", "title": "Shop", "description": "Sells things.",
	}
	indexed := func(image v1.Image) v1.ImageIndex { return indexOf(nil, map[string]v1.Image{"linux/amd64": image}) }
	for name, tt := range map[string]struct {
		content remote.Taggable
		want    bool
	}{
		"nowhere":                            {plain, false},
		"nowhere in an index":                {indexed(plain), false},
		"in the annotations of the manifest": {marked("true"), true},
		"in an artifact of Flux": {
			mutate.ConfigMediaType(marked("true"), "application/vnd.cncf.flux.config.v1+json"), true,
		},
		"in the labels of the config":                            {configured(image(nil), forward("true")), true},
		"in an index itself":                                     {mutate.Annotations(indexed(plain), forward("true")).(v1.ImageIndex), true},
		"in what an index says of an image":                      {describing("true"), true},
		"in the image for linux/amd64":                           {indexed(marked("true")), true},
		"in the labels of an image of an index":                  {indexed(configured(image(nil), forward("true"))), true},
		"in the labels, though the annotations say all the rest": {configured(image(described), forward("true")), true},
		"in an image, though its index says all the rest": {
			annotated(indexed(configured(image(described), forward("true"))), described).(v1.ImageIndex), true,
		},
		"as false":                              {marked("false"), false},
		"as false in the labels":                {configured(image(nil), forward("false")), false},
		"as false, but the labels say true":     {configured(marked("false"), forward("true")), true},
		"as true, but the labels say false":     {configured(marked("true"), forward("false")), true},
		"as false in an index, but true in it":  {mutate.Annotations(indexed(marked("true")), forward("false")).(v1.ImageIndex), true},
		"and a mark that cannot be read is one": {marked("yes"), true},
		"and so is one in capitals":             {marked("False"), true},
		"and so is one without a value":         {marked(""), true},
		"and so is a label that cannot be read": {configured(image(nil), forward("0")), true},
		"and a mark of another name is none":    {mutate.Annotations(plain, map[string]string{forwardOnly + "s": "true"}).(v1.Image), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t)
			s.push("1.0.0", tt.content)
			got, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(got.ForwardOnly).To(Equal(tt.want))
		})
	}
}
