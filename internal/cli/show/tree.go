// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// TreeStyle is how a tree is drawn. The zero value draws in ASCII, without colours, in UTC
// and with lines of any length.
type TreeStyle struct {
	Style
	// Zone is where times are shown; nil for UTC.
	Zone *time.Location
	// Explain is the command that says more about holds, as the user types it; empty if
	// none is named.
	Explain string
}

// leftColumn is how wide the column with the names is, unless a name needs more.
const leftColumn = 22

// Tree draws a tree: a head, a line for what is next, and a line for each node. Texts of
// the cluster cannot control the terminal. The error is the one of the writer.
func Tree(w io.Writer, t tree.Tree, s TreeStyle) error {
	d := &drawing{TreeStyle: s, namespace: t.Root.Object.Namespace, now: t.Time.Time}
	d.head(t)
	d.conditions(t.Root, d.bar())
	d.children(t.Root, "")
	if _, err := io.WriteString(w, d.text.String()); err != nil {
		return fmt.Errorf("write the tree: %w", err)
	}
	return nil
}

// Origin writes each path of an origin, a line for each step, and below it why it ends early.
func Origin(w io.Writer, o tree.Origin, s TreeStyle) error {
	d := &drawing{TreeStyle: s}
	for _, path := range o.Paths {
		for i, step := range path.Steps {
			line := strings.TrimSpace(namespaced(step.Object) + " " + inBrackets(step.Text))
			if i > 0 {
				line = "  " + d.pick("◀", "<-") + " " + line
			}
			d.text.WriteString(d.wrap(Clean(line)) + "\n")
		}
		if path.End != "" {
			d.text.WriteString(d.wrap(d.sign(tree.Failed)+" "+Clean(path.End)) + "\n")
		}
	}
	if _, err := io.WriteString(w, d.text.String()); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}

// inBrackets puts a text into brackets, except the number of a promotion.
func inBrackets(text string) string {
	if text == "" || strings.HasPrefix(text, "#") {
		return text
	}
	return "(" + text + ")"
}

// drawing is a tree as text.
type drawing struct {
	TreeStyle

	// namespace is the one that names leave out.
	namespace string
	// now is when the tree was read.
	now  time.Time
	text strings.Builder
}

func (d *drawing) pick(drawn, ascii string) string {
	if d.Unicode {
		return drawn
	}
	return ascii
}

func (d *drawing) bar() string { return d.pick("│", "|") }

// branches returns how a line begins and how the lines below it do.
func (d *drawing) branches(last bool) (this, below string) {
	if last {
		return d.pick("└─ ", "`- "), "   "
	}
	return d.pick("├─ ", "|- "), d.bar() + "  "
}

var treeSigns = map[tree.Sign]Sign{
	tree.Well: Well, tree.Waits: Waits, tree.Failed: Bad, tree.Suspended: Paused, tree.Unknown: Asks, warns: Warns,
}

func (d *drawing) sign(s tree.Sign) string { return string(d.Sign(treeSigns[s])) }

// mark is a sign without its colour.
func (d *drawing) mark(s tree.Sign) string { return d.symbol(treeSigns[s]) }

// longestSaid is how many characters of a text a screen has: enough for a cause, which is at its
// end, or at its beginning. Flux may repeat whole objects in between. Explain has all of it.
const longestSaid = 240

// narrowest is how many columns a text must have to be wrapped at all.
const narrowest = 8

// line writes a line of two columns: names, and what is said, which begins with a sign
// unless that is empty. What is said is wrapped, because its end often has the cause. The
// lines below begin with a prefix. If there is little room beside the names, all of it goes
// below them. Names are cut.
func (d *drawing) line(left string, sign tree.Sign, right, prefix string) {
	left, right = Clean(left), Clean(right)
	if d.Width > 0 {
		right = truncate.Text(right, longestSaid)
	}
	if right != "" || sign != "" {
		left += strings.Repeat(" ", max(leftColumn-runewidth.StringWidth(left), 2))
	}
	mark, painted := "", ""
	if sign != "" {
		mark, painted = d.mark(sign)+" ", d.sign(sign)+" "
	}
	column := runewidth.StringWidth(left + mark)
	switch deeper := prefix + "   "; {
	case d.Width == 0 || column+runewidth.StringWidth(right) <= d.Width:
		d.write(left + painted + right)
	case d.Width-column >= fewest:
		lines := fold(right, d.Width-column)
		d.write(left + painted + lines[0])
		d.writeBelow(prefix+strings.Repeat(" ", column-runewidth.StringWidth(prefix)), lines[1:])
	case column <= d.Width && d.Width-runewidth.StringWidth(deeper) >= narrowest:
		d.write(left + painted)
		d.wrapped(deeper, right)
	default:
		d.write(d.begin(left+mark+right, d.Width))
	}
}

// wrapped writes a text behind a prefix, over several lines where it has no room in one.
func (d *drawing) wrapped(prefix, text string) {
	switch room := d.Width - runewidth.StringWidth(prefix); {
	case d.Width == 0 || runewidth.StringWidth(text) <= room:
		d.write(prefix + text)
	case room < narrowest:
		d.write(d.begin(prefix+text, d.Width))
	default:
		d.writeBelow(prefix, fold(text, room))
	}
}

func (d *drawing) write(line string) { d.text.WriteString(strings.TrimRight(line, " ") + "\n") }

func (d *drawing) writeBelow(prefix string, lines []string) {
	for _, line := range lines {
		d.write(prefix + line)
	}
}

// begin cuts the end of a text: of names, and of what says most at its beginning.
func (d *drawing) begin(text string, columns int) string {
	return runewidth.Truncate(text, columns, d.ellipsis())
}

// warns is the sign of a problem of the whole Rollout.
const warns tree.Sign = "Warns"

// head writes what runs, and what comes next.
func (d *drawing) head(t tree.Tree) {
	d.line("Rollout "+t.Root.Object.Namespace+"/"+t.Root.Object.Name, "", d.runs(t), d.bar())
	if message := t.Head.StateMessage; message != "" && t.Root.Sign != tree.Well {
		d.line(d.bar(), t.Root.Sign, message, d.bar())
	}
	for _, problem := range t.Head.Problems {
		sign := warns
		if problem.Reason == explain.SuspendedReason {
			sign = tree.Suspended
		}
		d.line(d.bar(), sign, problem.Reason+": "+problem.Message, d.bar())
	}
	if t.Head.Next != nil {
		d.line(d.bar()+" Next", "", d.next(t.Head), d.bar())
	}
	if d.Explain != "" && (t.Root.Sign == tree.Failed || t.Head.Next != nil && len(t.Head.Next.Holds) > 0) {
		d.write(d.bar() + strings.Repeat(" ", leftColumn-1) + "see: " + d.Explain) // a command is not broken
	}
}

// runs returns the version that runs, its state, since when, by whom, and the message.
func (d *drawing) runs(t tree.Tree) string {
	h := t.Head
	if h.Version == "" {
		return "no release yet"
	}
	text := h.Version
	if h.State != "" {
		text += "  " + d.mark(t.Root.Sign) + " " + h.State
	}
	if h.Since != nil {
		text += fmt.Sprintf("  since %s (%s)", d.moment(h.Since.Time, t.Time.Time), Ago(h.Since.Time, t.Time.Time))
	}
	if h.By != "" {
		text += ", by " + h.By
	}
	if h.Message != "" {
		text += fmt.Sprintf(": %q", h.Message)
	}
	return text
}

func (d *drawing) moment(t, now time.Time) string { return Moment(t, now, d.zone()) }

func (d *drawing) zone() *time.Location {
	if d.Zone == nil {
		return time.UTC
	}
	return d.Zone
}

// next returns the release that is next, and whether it goes.
func (d *drawing) next(h tree.Head) string {
	n := h.Next
	name := h.NextName()
	switch {
	case n.Promotes && h.Suspended:
		return name + ", goes once you resume it: " + n.Message
	case n.Promotes:
		return name + ", goes now: " + n.Message
	case len(n.Holds) == 0:
		return name
	}
	return fmt.Sprintf("%s, held by %d", name, len(n.Holds))
}

// children writes a line for each node below, and everything below these.
func (d *drawing) children(of *tree.Node, prefix string) {
	for i, child := range of.Children {
		this, below := d.branches(i == len(of.Children)-1)
		if text, ok := d.inOneLine(child, this); ok && prefix == "" {
			d.line(prefix+this+child.Name, "", text, prefix+below)
			continue
		}
		d.line(prefix+this+d.title(child), child.Sign, d.said(child), prefix+below)
		d.conditions(child, prefix+below)
		d.measured(child, prefix+below)
		d.children(child, prefix+below)
	}
}

// conditions writes the conditions of a node.
func (d *drawing) conditions(of *tree.Node, prefix string) {
	for _, c := range of.Conditions {
		d.line(fmt.Sprintf("%s   %s=%s", prefix, c.Type, c.Status), "", strings.TrimSuffix(c.Reason+": "+c.Message, ": "), prefix+"   ")
	}
}

// measured writes what was measured below the node of a HealthCheck.
func (d *drawing) measured(of *tree.Node, prefix string) {
	if of.Measured == nil {
		return
	}
	for _, line := range Measured(*of.Measured, d.now, d.zone()) {
		d.wrapped(prefix+"   ", line)
	}
}

// inOneLine returns the children of a group as one text, if there is place for it.
func (d *drawing) inOneLine(group *tree.Node, before string) (string, bool) {
	if group.Name == "" || len(group.Children) == 0 || !slices.ContainsFunc(group.Children, isBrief) {
		return "", false
	}
	var all []string
	for _, child := range group.Children {
		if !isBrief(child) {
			return "", false
		}
		text := d.title(child)
		if more := d.said(child); more != "" && !(child.Sign == tree.Well && child.Object == nil) {
			text += ": " + more
		}
		all = append(all, d.mark(child.Sign)+" "+text)
	}
	text := strings.Join(all, "   ")
	width := max(leftColumn, runewidth.StringWidth(before+group.Name)+2) + runewidth.StringWidth(Clean(text))
	return text, d.Width == 0 && len(all) <= 2 || width <= d.Width
}

// isBrief reports whether a node is only one line, and no target.
func isBrief(n *tree.Node) bool {
	return len(n.Children) == 0 && len(n.Conditions) == 0 && n.Measured == nil && !n.Target
}

// title returns the name of a node.
func (d *drawing) title(n *tree.Node) string {
	switch {
	case n.Object != nil && (n.Object.Namespace == "" || n.Object.Namespace == d.namespace):
		return n.Object.String()
	case n.Object != nil:
		return namespaced(*n.Object)
	case n.Name != "":
		return n.Name
	case n.Sign == tree.Well:
		return others(n.Folded.Count)
	}
	return many(*n.Folded) + names(*n.Folded)
}

func others(count int) string {
	if count == 1 {
		return "1 other"
	}
	return fmt.Sprintf("%d others", count)
}

// names returns the first names of what is folded, in brackets.
func names(f tree.Folded) string {
	if len(f.Names) == 0 {
		return ""
	}
	text := strings.Join(f.Names, ", ")
	if more := f.Count - len(f.Names); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return " (" + text + ")"
}

func namespaced(o tree.Object) string {
	if o.Namespace == "" {
		return o.String()
	}
	return o.Kind + "/" + o.Namespace + "/" + o.Name
}

// said returns the text of a node, and what is folded in it. Beside a failure, what is well
// is of no interest.
func (d *drawing) said(n *tree.Node) string {
	text := n.Text
	if n.Until != nil {
		text += " (" + d.moment(n.Until.Time, d.now) + ")"
	}
	if n.Folded == nil || n.Object == nil && n.Name == "" || n.Sign == tree.Unknown || n.Sign == tree.Failed && text != "" {
		return text
	}
	folded := many(*n.Folded)
	if n.Object != nil {
		folded += ", all current"
	}
	if text == "" {
		return folded
	}
	return text + "; " + folded
}

// many returns the number of what is folded, and its kind.
func many(f tree.Folded) string {
	kind := f.Kind
	switch {
	case kind == "" && f.Count == 1:
		kind = "object"
	case kind == "":
		kind = "objects"
	case f.Count > 1:
		kind = kinds.Plural(kind)
	}
	return fmt.Sprintf("%d %s", f.Count, kind)
}
