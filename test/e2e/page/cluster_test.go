// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/cli/web"
	"github.com/fluxrollouts/rollout-controller/test/browser"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// publicHost is where browsers would find the page.
const publicHost = "rollouts.example.com"

// clusterPage is the page in a cluster, with an identity and rights of its own.
type clusterPage struct {
	t       *testing.T
	env     *env.Env
	account string
	token   string
	address string
	said    *said
}

// said is what the program has printed.
type said struct{ atomic.Pointer[bytes.Buffer] }

func (s *said) Write(text []byte) (int, error) {
	old := s.Load()
	next := &bytes.Buffer{}
	if old != nil {
		next.Write(old.Bytes())
	}
	n, err := next.Write(text)
	s.Store(next)
	return n, err
}

// serveCluster runs the page with the rights that its installation has, and no others.
func serveCluster(t *testing.T) *clusterPage {
	t.Helper()
	return serveClusterAt(t, func(net.Listener) (string, *tls.Config) { return publicHost, nil })
}

// serveClusterAt serves under a name, with a certificate or none.
func serveClusterAt(t *testing.T, at func(net.Listener) (host string, certificate *tls.Config)) *clusterPage {
	t.Helper()
	p := &clusterPage{t: t, env: env.New(t, plane), said: &said{}}
	p.env.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.env.Namespace}})
	p.account = "system:serviceaccount:" + p.env.Namespace + ":web"
	p.token = p.user("web", rbacv1.RoleRef{})
	role := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.env.Namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: webRole(t)},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.env.Namespace, Name: "web"}},
	}
	p.env.Create(role)
	config := rest.AnonymousClientConfig(plane.RESTConfig())
	config.BearerToken = p.token
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, certificate := at(listener)
	streams := genericiooptions.NewTestIOStreamsDiscard()
	streams.ErrOut = p.said
	page := &inspect.ClusterPage{
		Program: program.New("kubectl rollouts", streams), Config: config, Public: &url.URL{Scheme: "https", Host: host}, Name: "prod-eu", TLS: certificate,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	board := web.NewBoard()
	go func() { ended <- page.Serve(ctx, listener, board) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the page ended: %v", err)
		}
	})
	p.address = listener.Addr().String()
	env.Eventually(t, "a page that has read all Rollouts", func() (bool, string) { return board.Reading().Complete, "" })
	return p
}

// webRole creates the ClusterRole that the component installs, once.
func webRole(t *testing.T) string {
	t.Helper()
	objects, err := manifests.WithComponents(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	roles, err := manifests.As[rbacv1.ClusterRole](objects, "ClusterRole")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Name == "rollout-controller-web-role" })
	if at < 0 {
		t.Fatal("the component has no role")
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "web-of-" + strings.ToLower(t.Name())}, Rules: roles[at].Rules}
	if err := plane.Client().Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	return role.Name
}

// user creates a ServiceAccount with a role in the namespace of the page or without any, and
// returns its token.
func (p *clusterPage) user(name string, role rbacv1.RoleRef) string {
	return userIn(p.t, p.env, name, role)
}

func userIn(t *testing.T, e *env.Env, name string, role rbacv1.RoleRef) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	e.Create(account)
	if role.Name != "" {
		e.Create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}, RoleRef: role, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: e.Namespace, Name: name}},
		})
	}
	request := &authenticationv1.TokenRequest{}
	if err := plane.Client().SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// reader is a Role of the application's namespace, which reads some groups.
func reader(a *env.Application, name string, groups ...string) rbacv1.RoleRef {
	a.T.Helper()
	a.Create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: groups, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
	}}})
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
}

var everyGroup = []string{
	v1alpha1.GroupVersion.Group, "environments.kuberik.com", "image.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io",
}

// visitor is a browser.
type visitor struct {
	*clusterPage
	cookie string
	// heard is all that was answered.
	heard bytes.Buffer
}

// ask sends a request, and returns its code and body.
func (v *visitor) ask(method, path, body string, headers ...string) (int, string) {
	v.t.Helper()
	response := v.send(v.t.Context(), method, path, body, headers...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	fmt.Fprintf(&v.heard, "%v %s\n", response.Header, text)
	return response.StatusCode, string(text)
}

func (v *visitor) send(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+v.address+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Host = publicHost
	r.Header.Set("Content-Type", "application/json")
	if v.cookie != "" {
		r.Header.Set("Cookie", v.cookie)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	return response
}

// login logs in with a token.
func (p *clusterPage) login(token string) *visitor {
	p.t.Helper()
	v := &visitor{clusterPage: p}
	response := v.send(p.t.Context(), http.MethodPost, "/api/v1/session", `{"token":"`+token+`"}`)
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	cookies := response.Cookies()
	if response.StatusCode != http.StatusOK || len(cookies) != 1 {
		p.t.Fatalf("login: %d %s", response.StatusCode, text)
	}
	v.cookie = cookies[0].Name + "=" + cookies[0].Value
	return v
}

// sees waits until the list has some text, and returns it.
func (v *visitor) sees(text string) string {
	v.t.Helper()
	var rows string
	env.Eventually(v.t, "a list with "+text, func() (bool, string) {
		_, rows = v.ask(http.MethodGet, "/api/v1/fleet", "")
		return strings.Contains(rows, text), rows
	})
	return rows
}

// requests returns what the page's own account has asked for.
func (p *clusterPage) requests() []string {
	p.t.Helper()
	audited, err := plane.Audited()
	if err != nil {
		p.t.Fatal(err)
	}
	var all []string
	for _, request := range audited {
		if request.User == p.account {
			all = append(all, request.Verb+" "+request.Resource)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// canary is an application whose objects have a text in each field that can have one.
func canary(t *testing.T, text string) *env.Application {
	t.Helper()
	a := gated(t)
	gate := fixture.MakeGate(text+"-gate", a.Name).Closed().Obj()
	gate.Namespace = a.Namespace
	gate.Annotations = map[string]string{v1alpha1.PrettyNameAnnotation: text, v1alpha1.DescriptionAnnotation: text}
	a.Create(gate)
	a.Ask(v1alpha1.DeployMessageAnnotation, text)
	rollout := a.Live()
	a.Change(rollout, func() {
		rollout.Labels = map[string]string{"canary": text}
		metav1.SetMetaDataAnnotation(&rollout.ObjectMeta, "canary", text)
	})
	a.Create(a.Another(text).Rollout())
	return a
}

// Cases 6, 7, 9 and 11 of two users at the same time, proposition 2: no byte of what one of
// them may not read is in any answer to him.
func TestViewersSeeWhatTheyMayRead(t *testing.T) {
	p := serveCluster(t)
	apps := []*env.Application{canary(t, "kestrel"), canary(t, "bittern")}
	texts := []string{"kestrel", "bittern"}
	var visitors []*visitor
	for i, a := range apps {
		visitors = append(visitors, p.login(userIn(t, a.Env, "user-"+texts[i], reader(a, "all", everyGroup...))))
	}
	for i, v := range visitors {
		v.sees(texts[i])
	}
	streams := make([]*http.Response, len(visitors))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, v := range visitors {
		_, rows := v.ask(http.MethodGet, "/api/v1/fleet", "")
		_, revision, _ := strings.Cut(rows, `"rev":"`)
		revision, _, _ = strings.Cut(revision, `"`)
		streams[i] = v.send(ctx, http.MethodGet, "/api/v1/fleet/stream", "", "Last-Event-ID: "+revision) //nolint:bodyclose // ends with the context
	}
	for range 3 {
		for i, v := range visitors {
			own, other := apps[i], apps[1-i]
			for _, path := range []string{
				"me", "fleet", "pipelines", "incidents", "calendar", "rollouts/" + own.Namespace + "/shop", "rollouts/" + own.Namespace + "/" + texts[i], "rollouts/" + own.Namespace + "/nobody",
				"rollouts/" + other.Namespace + "/shop", "rollouts/" + other.Namespace + "/nobody", "rollouts/nowhere/shop",
			} {
				v.ask(http.MethodGet, "/api/v1/"+path, "", "Impersonate-User: admin", "Impersonate-Group: system:masters", "X-Forwarded-User: admin", "X-Remote-Group: system:masters")
			}
		}
	}
	for _, a := range apps {
		a.Delete(a.Another(map[string]string{apps[0].Namespace: texts[0], apps[1].Namespace: texts[1]}[a.Namespace]).Rollout())
	}
	for i, body := range streams {
		text := make([]byte, 1<<16)
		n, err := io.ReadAtLeast(body.Body, text, 100)
		if err != nil {
			t.Fatal(err)
		}
		visitors[i].heard.Write(text[:n])
	}
	for i, v := range visitors {
		heard := v.heard.String()
		for _, want := range []string{texts[i], "user-" + texts[i], `not passing: RolloutGate`, "prod-eu", "is forbidden"} {
			if !strings.Contains(heard, want) {
				t.Errorf("%s does not see %s:\n%.4000s", texts[i], want, heard)
			}
		}
		// The address that was asked for is in the refusal.
		heard = strings.ReplaceAll(heard, apps[1-i].Namespace, "")
		if at := strings.Index(heard, texts[1-i]); at >= 0 {
			t.Errorf("%s hears of the other: %s", texts[i], heard[max(0, at-200):at+100])
		}
	}
	own := p.requests()
	if !slices.Contains(own, "watch kuberik.com/rollouts") {
		t.Errorf("the page follows no Rollouts: %v", own)
	}
	if slices.ContainsFunc(own, func(r string) bool { return r != "list kuberik.com/rollouts" && r != "watch kuberik.com/rollouts" }) {
		t.Errorf("the page has done by itself: %v", own)
	}
}

// Cases 5 and 6: who is not known causes no request of the page's own account, and none at
// all for what cannot be a token.
func TestUnknownVisitorsReachNoAPIServer(t *testing.T) {
	p := serveCluster(t)
	before := len(p.requests())
	v := &visitor{clusterPage: p}
	for _, path := range []string{"me", "fleet", "fleet/stream", "rollouts/a/b", "pipelines", "incidents", "calendar", "other"} {
		if code, body := v.ask(http.MethodGet, "/api/v1/"+path, ""); code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	gone := p.user("gone", rbacv1.RoleRef{})
	p.env.Delete(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.env.Namespace, Name: "gone"}})
	env.Eventually(t, "an API server that knows of it", func() (bool, string) {
		config := rest.AnonymousClientConfig(plane.RESTConfig())
		config.BearerToken = gone
		c, err := client.New(config, client.Options{Scheme: plane.Client().Scheme()})
		if err == nil {
			err = c.List(t.Context(), &v1alpha1.RolloutList{})
		}
		return apierrors.IsUnauthorized(err), fmt.Sprint(err)
	})
	answers := map[string]bool{}
	for _, token := range []string{gone, gone[:len(gone)-4] + "AAAA", "garbage", ""} {
		code, body := v.ask(http.MethodPost, "/api/v1/session", `{"token":"`+token+`"}`)
		if answers[body] = true; code != http.StatusUnauthorized || len(answers) != 1 {
			t.Errorf("%.10q: %d %s", token, code, body)
		}
	}
	if after := p.requests(); len(after) != before {
		t.Errorf("the page has asked by itself: %v", after)
	}
	if text := p.said.Load(); text == nil || strings.Contains(text.String(), gone[:10]) {
		t.Errorf("the log says %v", text)
	}
}

// Case 42: the account of the page may list and watch Rollouts, and otherwise what everybody
// may.
func TestPageHasNoRightsOfItsOwn(t *testing.T) {
	p := serveCluster(t)
	rules := func(token string) []string {
		config := rest.AnonymousClientConfig(plane.RESTConfig())
		config.BearerToken = token
		own, err := client.New(config, client.Options{Scheme: plane.Client().Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: p.env.Namespace}}
		if err := own.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, rule := range review.Status.ResourceRules {
			all = append(all, fmt.Sprint(rule.Verbs, rule.APIGroups, rule.Resources))
		}
		slices.Sort(all)
		return all
	}
	want := append(rules(p.user("nobody", rbacv1.RoleRef{})), "[list watch] [kuberik.com] [rollouts]")
	slices.Sort(want)
	if diff := cmp.Diff(want, rules(p.token)); diff != "" {
		t.Errorf("(-want +may):\n%s", diff)
	}
}

// Case 10: rights that end are seen in a minute, and the page of a Rollout at once.
func TestRightsThatEndAreSeen(t *testing.T) {
	p, a := serveCluster(t), gated(t)
	v := p.login(userIn(t, a.Env, "user", reader(a, "all", everyGroup...)))
	rows := v.sees(`"shop"`)
	_, revision, _ := strings.Cut(rows, `"rev":"`)
	revision, _, _ = strings.Cut(revision, `"`)
	ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
	defer cancel()
	stream := v.send(ctx, http.MethodGet, "/api/v1/fleet/stream", "", "Last-Event-ID: "+revision)
	defer stream.Body.Close()
	a.Delete(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "user"}})
	env.Eventually(t, "a page that is refused", func() (bool, string) {
		code, body := v.ask(http.MethodGet, "/api/v1/rollouts/"+a.Namespace+"/shop", "")
		return code == http.StatusForbidden, body
	})
	if text, err := io.ReadAll(stream.Body); err != nil || !strings.Contains(string(text), "event: reset") {
		t.Errorf("the stream: %q %v", text, err)
	}
	if code, body := v.ask(http.MethodGet, "/api/v1/fleet", ""); code != http.StatusOK || strings.Contains(body, `"shop"`) {
		t.Errorf("the list: %d %s", code, body)
	}
}

// Cases 11 and 19: who may read Rollouts alone sees what the status says, and what is missing.
// What objects name is never opened.
func TestPartsThatMayNotBeReadAreNamed(t *testing.T) {
	var opened atomic.Int32
	bait := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { opened.Add(1) })}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = bait.Serve(listener) }()
	t.Cleanup(func() { _ = bait.Close() })

	p, a := serveCluster(t), gated(t)
	address := "http://" + listener.Addr().String() + "/"
	gate := fixture.MakeGate("lure", a.Name).Closed().Obj()
	gate.Namespace = a.Namespace
	gate.Annotations = map[string]string{v1alpha1.DescriptionAnnotation: address}
	a.Create(gate)
	a.Ask(v1alpha1.DeployMessageAnnotation, address)
	a.Create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "rollouts"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"rollouts"}, Verbs: []string{"get", "list"},
	}}})
	v := p.login(userIn(t, a.Env, "user", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "rollouts"}))
	v.sees(`"shop"`)
	code, body := v.ask(http.MethodGet, "/api/v1/rollouts/"+a.Namespace+"/shop", "")
	if code != http.StatusOK || !strings.Contains(body, "SomeGatesBlocking") || !strings.Contains(body, "may not") || !strings.Contains(body, "1.1.0") {
		t.Errorf("%d %s", code, body)
	}
	if n := opened.Load(); n > 0 {
		t.Errorf("%d requests have followed an address of an object", n)
	}
}

// Cases 6, 8, 16 and 38 in a Browser: the page asks for a token, keeps it from scripts, and
// forgets it at the end.
func TestBrowserLogsInAndOut(t *testing.T) {
	axe, err := os.ReadFile("../../../web/node_modules/axe-core/axe.min.js")
	if err != nil {
		browser.Required(t, "axe-core is not there: run hack/browser.sh")
	}
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	p := serveClusterAt(t, func(l net.Listener) (string, *tls.Config) {
		return l.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates}
	})
	a := gated(t)
	token := userIn(t, a.Env, "kim", reader(a, "all", everyGroup...))
	o := &tab{t: t, Browser: browser.Start(t, chromedp.Flag("ignore-certificate-errors", true))}
	o.Do(t, chromedp.Navigate("https://"+p.address+"/?q=shop"))
	o.shows("log in with a token for the API server")
	for _, scheme := range []string{"light", "dark"} {
		o.schemes(scheme)
		found := browser.Ask(t, o.Browser, chromedp.Evaluate[string](string(axe)+`; axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}).then(
			(r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html).join("\n")).join("\n"))`, chromedp.EvalAwaitPromise))
		if found != "" {
			t.Errorf("%s: %s", scheme, found)
		}
		o.picture("login-" + scheme)
	}
	o.Do(t, chromedp.SendKeys(chromedp.CSS("#token"), "garbage\r"))
	o.shows("the API server does not accept this token")
	o.Do(t, chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
	o.shows("not passing: RolloutGate qa")
	o.shows("prod-eu · system:serviceaccount:" + a.Namespace + ":kim")
	o.shows("live ")
	kept := browser.Ask(t, o.Browser, chromedp.Evaluate[string](`document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)`))
	if kept != "{}{}" {
		t.Errorf("a script can read %s", kept)
	}
	o.Do(t, chromedp.Click(chromedp.CSS(".who button")))
	o.shows("log in with a token for the API server")
	o.Do(t, chromedp.Navigate("https://"+p.address+"/pipelines"))
	o.shows("log in with a token for the API server")
}
