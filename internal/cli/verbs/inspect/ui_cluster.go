// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/web"
)

// ClusterPage serves the page in a cluster, to users who log in with a token.
type ClusterPage struct {
	*program.Program
	// Config says where the API server is, and has the identity of the program. Rollouts are
	// listed and watched with it, and nothing else is done.
	Config *rest.Config
	// Public is how browsers reach the page, and Name what the cluster is called there.
	Public *url.URL
	Name   string
	// TLS has the certificate; nil if something in front ends TLS.
	TLS *tls.Config
}

// timeLimit is that of a request for a viewer.
const timeLimit = 30 * time.Second

// Serve serves until the context ends, or until the program may not read Rollouts.
func (c *ClusterPage) Serve(ctx context.Context, listener net.Listener, board *web.Board) error {
	own, err := program.OpenFor(c.Config, c.Version, imagev1.GroupVersion.Version)
	if err != nil {
		return err
	}
	open := func(ctx context.Context, token string) (*web.Viewer, error) { return c.viewer(ctx, token, board) }
	server := &web.Server{
		Authenticator: &web.Sessions{Open: open}, Board: board, Now: c.Now,
		Say: func(text string) { c.Err.Sentence(show.Warns, "%s", text) },
	}
	to, err := server.HTTPS(c.Public)
	if err != nil {
		return err
	}
	to.TLSConfig = c.TLS
	return following(ctx, c.Program, own, client.ListOptions{}, board, to, func() error {
		if c.TLS != nil {
			return to.ServeTLS(listener, "", "")
		}
		return to.Serve(listener)
	})
}

// viewer returns whom a token belongs to. All that he sees is read with it: the client has
// nothing of the program's own identity.
func (c *ClusterPage) viewer(ctx context.Context, token string, board *web.Board) (*web.Viewer, error) {
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken, config.Timeout = token, timeLimit
	cluster, err := program.Open(ctx, config, c.Version)
	if err != nil {
		return nil, err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := cluster.Client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("ask the API server whose token it is: %w", err)
	}
	name := review.Status.UserInfo.Username
	if name == "" || name == "system:anonymous" {
		return nil, apierrors.NewUnauthorized("nobody has this token")
	}
	rights := &web.Rights{May: cluster.MayList, Board: board, Now: c.Now}
	return &web.Viewer{Name: name, Source: c.pagesOf(cluster, rights), Sight: rights.Sight}, nil
}

// pagesOf reads with the rights of a viewer. The commands that it names are run elsewhere.
func (c *ClusterPage) pagesOf(cluster program.Cluster, rights *web.Rights) *pages {
	p := program.New(c.Called, genericiooptions.NewTestIOStreamsDiscard())
	p.Version, p.Now, p.Zone, p.AnsweredFrom = c.Version, c.Now, c.Zone, c.Name
	p.Connect = func(context.Context) (program.Cluster, error) { return cluster, nil }
	return &pages{Program: p, cluster: cluster, shown: func(ctx context.Context) ([]string, error) {
		seen, err := rights.Sight(ctx)
		return seen.Namespaces(), err
	}}
}
