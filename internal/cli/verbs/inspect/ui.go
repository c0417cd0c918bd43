// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/web"
)

// ui serves the page on the machine of the user.
type ui struct {
	*program.Program
	port int
	open bool
	// actions makes the changes of the page, and acts is true if it has any.
	actions Actions
	acts    bool
	// browse opens an address in the browser of the user.
	browse func(ctx context.Context, address string) error
}

// Actions offers the changes that the page can make, and makes them.
type Actions interface {
	web.Actions
	Offers(ctx context.Context, v program.View, x explain.Explanation) ([][]web.Offer, error)
}

// NewUI returns the verb ui.
func NewUI(p *program.Program, actions Actions) *cobra.Command {
	u := &ui{Program: p, actions: actions, browse: openBrowser}
	cmd := &cobra.Command{
		Use: "ui", Short: "Show all Rollouts in the browser: what runs, why a release is not out",
		Long: `Serve a page on this machine that shows what the other verbs show: all Rollouts, why a
release is not out, and the environments of each application. It follows every change.

It reads with your own rights, and changes nothing unless you allow actions: then it has
a button for each request of the command line, shows what it would do, and sends it as
the command line does once you agree. Only this machine can reach the page, and only
the browser that opens the address first. With -n, or if you may not list Rollouts of
all namespaces, it shows one namespace. Press Ctrl-C to end it.`,
		Example: fmt.Sprintf(`  %[1]s ui
  # With buttons: promote, approve, roll back, and so on
  %[1]s ui --allow-actions
  # On a machine without a browser: forward the port by ssh, and open the address yourself
  %[1]s ui --port 8765 --open=false`, p.Called),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return u.run(cmd.Context()) },
	}
	cmd.Flags().IntVar(&u.port, "port", 0, "the port to listen on; 0 takes a free one")
	cmd.Flags().BoolVar(&u.acts, "allow-actions", false, "let the page make changes, with your rights; each is shown before it is sent")
	cmd.Flags().BoolVar(&u.open, "open", true, "open the page in your browser")
	return cmd
}

// errInPod: everybody who reaches the pod would have the rights of its account.
var errInPod = errors.New("this is a pod, and the page is for the machine of one user alone: run it there")

func (u *ui) run(ctx context.Context) error {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return errInPod
	}
	c, err := u.Connect(ctx)
	if err != nil {
		return err
	}
	u.Connect = func(context.Context) (program.Cluster, error) { return c, nil }
	namespace, err := u.namespace(ctx, c)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(u.port)))
	if err != nil {
		return fmt.Errorf("listen on this machine: %w", err)
	}
	source := &pages{Program: u.Program, cluster: c, shown: func(context.Context) ([]string, error) { return []string{namespace}, nil }}
	keys := web.NewKeys(u.Now(), source)
	if u.acts {
		source.actions, keys = u.actions, keys.Acting(u.actions)
	}
	return u.serve(ctx, &web.Server{
		Authenticator: keys, Board: web.NewBoard(), Acts: u.acts, Now: u.Now,
		Say: func(text string) { u.Err.Sentence(show.Warns, "%s", text) },
	}, listener, client.ListOptions{Namespace: namespace}, keys.Fragment())
}

// namespace returns the namespace whose Rollouts are shown: empty for all of them.
func (u *ui) namespace(ctx context.Context, c program.Cluster) (string, error) {
	if given := u.Kubeconfig.Namespace; given != nil && *given != "" {
		return *given, nil
	}
	switch err := c.Client.List(ctx, &v1alpha1.RolloutList{}, client.Limit(1)); {
	case err == nil:
		return "", nil
	case apierrors.IsForbidden(err):
		return u.Namespace()
	default:
		return "", fmt.Errorf("list Rollouts: %w", err)
	}
}

// serve serves until the context ends, or until the user may not read Rollouts.
func (u *ui) serve(ctx context.Context, server *web.Server, listener net.Listener, where client.ListOptions, fragment string) error {
	to, err := server.HTTP(listener.Addr().(*net.TCPAddr))
	if err != nil {
		return err
	}
	c, err := u.Connect(ctx)
	if err != nil {
		return err
	}
	u.announce(ctx, "http://"+listener.Addr().String()+"/"+fragment)
	return following(ctx, u.Program, c, where, server.Board, to, func() error { return to.Serve(listener) })
}

// following serves rows that are up to date until the context ends, or until they may not be
// read.
func following(ctx context.Context, p *program.Program, c program.Cluster, where client.ListOptions, board *web.Board, to *http.Server, serve func() error) error {
	readable, link := newLink(ctx, p)
	defer link.stop(nil)
	link.say = func(sign show.Sign, format string, args ...any) {
		p.Err.Sentence(sign, format, args...)
		board.Away(sign != show.Well)
	}
	go fill(readable, link.rollouts(c, where), board)
	go func() {
		<-readable.Done()
		_ = to.Close() // streams last for as long as tabs do
	}()
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return link.refused()
}

// announce says where the page is, and opens it.
func (u *ui) announce(ctx context.Context, address string) {
	u.Out.Line("%s", address)
	u.Err.Line("open it within a minute, in one browser; press Ctrl-C to end")
	if !u.open {
		return
	}
	if err := u.browse(ctx, address); err != nil {
		u.Err.Sentence(show.Warns, "the browser could not be opened: %s", err)
	}
}

// listed is a Rollout of which only its row is kept.
type listed struct {
	metav1.ObjectMeta
	row web.Row
}

// fill keeps the rows of the Rollouts up to date until the context ends.
func fill(ctx context.Context, from cache.ListerWatcher, board *web.Board) {
	put := func(object any) { board.Put(object.(*listed).row) }
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: from, ObjectType: &v1alpha1.Rollout{},
		Transform: func(object any) (any, error) {
			if r, is := object.(*v1alpha1.Rollout); is {
				return &listed{metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, ResourceVersion: r.ResourceVersion}, web.RowOf(r)}, nil
			}
			return object, nil
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: put, UpdateFunc: func(_, object any) { put(object) },
			DeleteFunc: func(object any) {
				key, _ := cache.DeletionHandlingObjectToName(object)
				board.Remove(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
			},
		},
	})
	go func() {
		if cache.WaitFor(ctx, "", controller.HasSyncedChecker()) {
			board.Complete()
		}
	}()
	controller.RunWithContext(ctx)
}

// openBrowser opens an address as the desktop does.
func openBrowser(ctx context.Context, address string) error {
	command := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if command == nil {
		command = []string{"xdg-open"}
	}
	return exec.CommandContext(ctx, command[0], append(command[1:], address)...).Start()
}
