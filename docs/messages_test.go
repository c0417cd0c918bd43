// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// messagesPage is the page that lists each message. It is made from a catalogue.
const messagesPage, catalogue = "docs/messages.md", "internal/cli/messages/catalogue"

// gap stands for a variable part of a message, here and on the page.
const gap = "…"

// logs is the prefix of a reason in quietPackages. It means that the texts of the package
// are in the log, after the message that follows the prefix.
const logs = "logs: "

// commandLine is the folder of the packages that answer a user, and write no message to an
// object. Lint and its rules have a page of their own.
const commandLine = "internal/cli/"

// quietPackages contains the packages that write to no object, with the reason.
var quietPackages = map[string]string{
	"internal/announce":           "the lines of the log are in docs/operations.md",
	"internal/unreadable":         "what it says of an object stands in the event Unreadable, whose page has an example",
	"internal/cache/fieldindex":   "the controller exits with it when it starts, because of the API server's own complaint",
	"cmd/controller":              logs + "the controller stopped",
	"cmd/rollout-web":             "its flags and its log; what users see is in docs/guides/page.md",
	"internal/report":             "its texts are the end of messages that are on the page",
	"internal/registry/imageinfo": logs + "metadata of a release cannot be read",
	"internal/health/pool":        logs + "the controller stopped",
	"internal/flux/notify":        logs + "Flux events cannot be delivered; promotions go on, and rollout_notifications_dropped_total counts what is lost",
	"internal/uninstall":          logs + "the controller stopped",
	"internal/registry":           logs + "metadata of a release cannot be read",
}

// unseen contains the texts of the other packages that reach no condition, event, history
// entry, target or status, by the reason.
var unseen = map[string][]string{
	"the controller looks for it in what etcd and the API server say": {"too large", "larger than max"},
	"the metadata of an alert":                                        {"kubectl rollouts approve … -n … --version …"},
	"another message takes its place":                                 {"the object cannot be decoded", "too many objects", "this account may not read …, which ArtifactGenerator … takes"},
	"the reconciler waits a moment because of it": {
		"it is too early to try again", "a HealthCheck of a target was created or corrected, whose event is on its way",
		"the Rollout or its Environment was created a moment ago, and what it needs is on its way",
	},
	"a user who asks about a tag gets it; no object has it": {
		"… is deployed: …",
		"… does not admit …: its range or filter leaves the tag out",
		"… has not reported …: it is not in the registry, or Flux has not seen it yet",
		"… was deleted from the registry",
		"… is not newer than …, which is deployed",
		"… is another name of …, which is deployed: both tags have the same content",
		"… is known, but is not a candidate",
	},
	"the controller exits with it when it starts": {
		"… is not a destination: …; write scheme://host or scheme://host:port, for example https://*.example.com",
		"it has a path",
		"*. is before an IP address",
	},
	"the log says it, and the HealthCheck says that its measurement failed": {
		"find the addresses of this machine",
		"get the Service of the API server",
		"wait for the addresses of the API server",
		"list the EndpointSlices of the API server",
		"get Service …",
		"list the EndpointSlices of Service …",
		"get Secret …",
		"get the Secret of …",
	},
	"the controller ends, and drops the measurement": {"the measurement was cancelled"},
	"kuberik's dashboard writes it":                  {"Cleared version pin", "Pinned to version"},
	"a gate says it of itself": {
		"Environments, quarantines, failures and gates of the cluster",
		"Shows clients that know only gates what else holds releases. It holds nothing by itself. The status of the Rollout has the reasons.",
	},
	"a list is left, because enough was read":                {"enough was read"},
	"the classes say it in other words":                      {"the response is too large"},
	"it stands in a request":                                 {"Bearer …"},
	"it identifies what is asked":                            {"jobs in …", "objects in …"},
	"it is the end of a message that is on the page":         {": correct the login, or let it read this repository; see spec.backend.secret"},
	"the controller says it to itself, to list a kind again": {"the objects are listed again"},
	"it never happens: every list of Kubernetes has objects": {"fill a list: … has no objects"},
	"the log says it, and the same is tried again": {
		"too many kinds were asked for that the API server does not serve",
		"a release would be promoted, once the report of an upstream was fetched again",
		"the first release is proven for the targets in the caches, which do not show … yet",
		"the caches show other targets than when the pass began",
		"the targets of another first release are looked for",
	},
	"only the log says it, and the status shows it": {"the failure of … was reported to ReleaseQuarantine …"},
	"only a mistake in this project can cause it": {
		"a promotion cannot go from … to …",
		"the request is for another host than the destination",
		"no promotion has failed that could be retried",
		"no promotion is under way that could become …",
		"unreadable: …",
	},
	"it stands in a certificate": {
		"PRIVATE KEY",
	},
	"nothing is reported about an object that is as it should be": {
		"All pods are updated and available. Replicas: …",
		"Deployment is paused, rolled out and available. Replicas: …",
	},
	"a promotion is stored with the verdicts that follow it": {
		"… is newer and eligible",
	},
	"it is looked for in what CEL says": {
		"cost limit exceeded", "optional.none() dereference", "no such attribute", "no such overload", "type conversion error", "modulus by zero",
		"index out of", "error parsing regexp", "no such key:", "(in container", "expecting {",
	},
	"it is part of other messages": {
		"HelmRelease …",
		"a boolean",
		"a list",
		"a number",
		"a string",
		"Environment … of application … for Rollout …",
		"is older than",
		"cannot be compared with",
	},
	"the command line says it to users who may not read a schedule": {"…, as RolloutGate … shows"},
	"it is looked for in what Flux says":                            {"health check failed after"},
	"the next pass begins at once": {
		"the Rollout has changed since it was read",
	},
	"it is compared, and not shown": {
		"generation …, ready …",
		"remote error",
		"version …",
	},
}

func TestEveryMessageIsOnThePageOfMessages(t *testing.T) {
	quotes := quotesIn(documents(t)[messagesPage])
	seen, missing := map[string]bool{}, map[string][]message{}
	for _, m := range messages(t) {
		if m.logged || seen[m.text] {
			continue
		}
		seen[m.text] = true
		if !isUnseen(m.text) && !slices.ContainsFunc(quotes, pattern(m.text).MatchString) {
			name := filepath.ToSlash(filepath.Dir(m.place))
			missing[name] = append(missing[name], m)
		}
	}
	for name, all := range missing {
		t.Error(whatToAdd(name, all))
	}
	for name, reason := range quietPackages {
		if logged, ok := strings.CutPrefix(reason, logs); ok && !slices.Contains(quotes, logged) {
			t.Errorf("%s does not quote %q, behind which %s says the rest", messagesPage, logged, name)
		}
	}
	for reason, texts := range unseen {
		for _, text := range texts {
			if !seen[text] {
				t.Errorf("no code says %q any more: remove it from \"unseen\" (%s)", text, reason)
			}
		}
	}
	if len(seen) < 170 {
		t.Errorf("found only %d messages: the search is broken", len(seen))
	}
}

// whatToAdd returns the instructions to add the missing messages of a package to the
// page.
func whatToAdd(name string, missing []message) string {
	var text strings.Builder
	fmt.Fprintf(&text, "people cannot look these messages up. Add an entry for each to a file of %s.\n"+
		"What nobody can see goes to \"unseen\" in docs/messages_test.go. If that is all that the package says,\n"+
		"add it to \"quietPackages\" instead:\n\n\t%q: \"why\",\n", catalogue, name)
	for _, m := range missing {
		fmt.Fprintf(&text, "\n%s\n    - seen: >-\n        `%s`\n      means: >-\n        What it means, and what to do.\n\t\t%q,\n", m.place, m.text, m.text)
	}
	return text.String()
}

func TestPageOfMessagesQuotesNoMessageThatIsGone(t *testing.T) {
	var patterns []*regexp.Regexp
	for _, m := range messages(t) {
		if !isUnseen(m.text) {
			patterns = append(patterns, pattern(m.text))
		}
	}
	quotes := 0
	for _, line := range strings.Split(documents(t)[messagesPage], "\n") {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, quote := range quotesIn(strings.SplitN(line, " | ", 2)[0]) {
			if strings.Count(quote, " ") < 2 {
				continue
			}
			quotes++
			if !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(quote) }) {
				t.Errorf("%s quotes a message that no code gives: `%s`", messagesPage, quote)
			}
		}
	}
	if quotes < 100 {
		t.Errorf("found only %d messages on the page", quotes)
	}
}

func isUnseen(text string) bool {
	for _, texts := range unseen {
		if slices.Contains(texts, text) {
			return true
		}
	}
	return false
}

var quote = regexp.MustCompile("(?s)`([^`]+)`")

// quotesIn returns the texts between backticks, each on one line.
func quotesIn(page string) []string {
	var quotes []string
	for _, match := range quote.FindAllStringSubmatch(prose(page), -1) {
		quotes = append(quotes, strings.Join(strings.Fields(match[1]), " "))
	}
	return quotes
}

// pattern returns an expression that finds the fixed parts of a message in their order.
// It ignores case, because the beginning of a sentence may be in upper or lower case.
func pattern(text string) *regexp.Regexp {
	parts := strings.Split(text, gap)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
	}
	return regexp.MustCompile("(?i)" + strings.Join(parts, ".*"))
}

// message is the text of one message, with a gap for each variable part.
type message struct {
	text, place string
	logged      bool // and not shown anywhere else
}

// messages returns the texts in the program and its packages that read like a message. It
// finds new packages by itself.
func messages(t *testing.T) []message {
	t.Helper()
	return append(messagesIn(t, "internal"), messagesIn(t, "cmd")...)
}

func messagesIn(t *testing.T, folder string) []message {
	t.Helper()
	var all []message
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		_, quiet := quietPackages[folder]
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, search{logged: quiet || strings.HasPrefix(folder, commandLine), found: func(node ast.Node, text string, logged bool) {
			if readsLikeAMessage(text) {
				place := fmt.Sprintf("%s:%d", name, positions.Position(node.Pos()).Line)
				all = append(all, message{text: text, place: place, logged: logged})
			}
		}}.inspect)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// search finds texts in code.
type search struct {
	found  func(node ast.Node, text string, logged bool)
	logged bool // the texts that are found are only logged
}

// formats contains the functions that take a format, with the index of the format among
// their arguments.
var formats = map[string]int{"Sprintf": 0, "Errorf": 0, "Fprintf": 1, "Eventf": 3, "AnnotatedEventf": 4, "hold": 1, "unreadableUpstream": 0, "problemFor": 1, "noKeys": 0, "Problemf": 0, "conflict": 1, "waiting": 1, "problem": 1}

// wraps is the end of the format of an error that says what was tried when another one
// occurred. The log has it; who shows the cause to users uses words of its own.
const wraps = ": %w"

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*[a-zA-Z]`)

// inspect passes the largest texts to found, including those that are joined with "+". It
// skips imports, struct types with their tags, and the help texts of metrics.
func (s search) inspect(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ImportSpec, *ast.StructType:
		return false
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Help" { // of a metric
			return false
		}
	case *ast.CallExpr:
		if isLogging(n) && !s.logged {
			ast.Inspect(n, search{found: s.found, logged: true}.inspect)
			return false
		}
		return calledName(n) != "NewDesc" && s.call(n)
	case ast.Expr:
		if isText(n) {
			s.found(n, collapsed(textOf(n)), s.logged)
			return false
		}
	}
	return true
}

func (s search) call(call *ast.CallExpr) bool {
	at, isFormat := formats[calledName(call)]
	if !isFormat {
		return true
	}
	for i, argument := range call.Args {
		if i == at && isText(argument) {
			format := textOf(argument)
			s.found(argument, collapsed(verb.ReplaceAllString(format, gap)), s.logged || strings.HasSuffix(format, wraps))
			continue
		}
		ast.Inspect(argument, s.inspect)
	}
	return false
}

func calledName(call *ast.CallExpr) string {
	switch called := call.Fun.(type) {
	case *ast.SelectorExpr:
		return called.Sel.Name
	case *ast.Ident:
		return called.Name
	}
	return ""
}

// isLogging reports whether a call writes to the log, as log.Info and
// ctrl.LoggerFrom(ctx).Error do. It includes calls of Ends, which reports why a pass
// ends.
func isLogging(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if ok && selector.Sel.Name == "Ends" {
		return true
	}
	if !ok || selector.Sel.Name != "Info" && selector.Sel.Name != "Error" && selector.Sel.Name != "WithName" {
		return false
	}
	logger := false
	ast.Inspect(selector.X, func(node ast.Node) bool {
		if name, ok := node.(*ast.Ident); ok && strings.HasPrefix(strings.ToLower(name.Name), "log") {
			logger = true
		}
		return true
	})
	return logger
}

// isText reports whether an expression is a string literal, or a sum with one.
func isText(expression ast.Expr) bool {
	switch e := expression.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.ParenExpr:
		return isText(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (isText(e.X) || isText(e.Y))
	}
	return false
}

func textOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.ParenExpr:
		return textOf(e.X)
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	}
	return gap
}

var gaps = regexp.MustCompile(gap + "(/?" + gap + ")*")

func collapsed(text string) string { return strings.TrimSpace(gaps.ReplaceAllString(text, gap)) }

// readsLikeAMessage reports whether a text reads like a message. Names of fields, keys
// and single words do not.
func readsLikeAMessage(text string) bool {
	letters := 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters >= 5 && strings.Contains(text, " ")
}
