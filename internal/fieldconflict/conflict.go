// SPDX-License-Identifier: Apache-2.0

// Package fieldconflict decides whether another field manager fights for a field that
// the controller writes, and when the field may be written again. It is pure: it reads
// no object and no clock.
//
// A field that was changed is restored at once. If it is overwritten again soon, another
// manager wants another value and will not stop. From then on the field is written with
// growing pauses, until the other manager gives way:
//
//	          Promoted            Wrote
//	nothing ────────────▶ pending ──────▶ nothing   the first write of a promotion
//	   │
//	   │ Wrote: a changed field was restored
//	   ▼
//	watched ◀──────────────────────────────────────┐
//	   │                                           │ Kept: without another write, or for
//	   │ Overwritten within 10 minutes             │ longer than ever before
//	   │ (2 hours by an applier)                   │ Overwritten: by no known manager
//	   ▼              Wrote: after the pause       │
//	contested: lost ◀─────────────────▶ contested: written
//	                 Overwritten
//
// The pauses are 30 s, 1 min, 2 min, 4 min, 8 min, and then 10 min each. A field that was
// overwritten after 4 minutes counts as kept once our value was there for
// 4 min + 1 min + 30 s: the longest time so far, a quarter more for schedules that are
// late, and the shortest pause.
package fieldconflict

import "time"

const (
	// ShortestPause is the time between the first two writes to a contested field. It
	// doubles with each write that follows.
	ShortestPause = 30 * time.Second
	// LongestPause is the longest time between two writes to a contested field. It is
	// also how soon a manager without a schedule, such as a user, has to overwrite a
	// field to contest it.
	LongestPause = 10 * time.Minute
	// applierInterval is how soon a manager that applies manifests has to overwrite a
	// field to contest it. Appliers come back on a schedule, and few schedules are
	// longer.
	applierInterval = 2 * time.Hour
)

// Manager is the other field manager, as far as it is known.
type Manager struct {
	// Message names the manager, and how to make it leave the field alone.
	Message string
	// Known is true if managedFields name the manager. A field that was removed has none.
	Known bool
	// Applies is true if the manager applies manifests, which it does on a schedule.
	Applies bool
}

// interval is how soon after a write this manager has to overwrite a field to contest it.
func (m Manager) interval() time.Duration {
	if m.Applies {
		return applierInterval
	}
	return LongestPause
}

// Conflict is what is remembered of the writes to one field of one object. In the zero
// value nothing was written. It is not safe for concurrent use.
type Conflict struct {
	version string        // that was written last
	pending bool          // a version was promoted and is not written yet
	wrote   time.Time     // zero if nothing follows from the last write any more
	message string        // of the competing manager; empty while there is none
	known   bool          // the competing manager is known by name
	lost    bool          // the field was overwritten since the last write
	losses  int           // how often it was overwritten since there is a competing manager
	longest time.Duration // that a value stayed before it was overwritten
}

// Resume returns the conflict that a status reports when the process does not remember
// it. It goes on with a pause: restarts must not lead to more writes.
func Resume(version, message string, now time.Time) *Conflict {
	return &Conflict{version: version, wrote: now, message: message, known: true, longest: LongestPause}
}

// Version is the version that was written last.
func (c *Conflict) Version() string { return c.version }

// Message names the competing manager and the remedy; it is empty while there is none.
func (c *Conflict) Message() string { return c.message }

// Lost reports whether the field was overwritten since the last write to it.
func (c *Conflict) Lost() bool { return c.lost }

// IsWritten reports whether a version was written, so that another value in the field is
// somebody else's.
func (c *Conflict) IsWritten(version string) bool { return !c.pending && c.version == version }

// Promoted notes that a version was promoted and is to be written.
func (c *Conflict) Promoted() { c.pending = true }

// Wrote notes a write of a version. It returns false if the conflict can be forgotten:
// the first write of a promotion restores nothing, and so starts no conflict.
func (c *Conflict) Wrote(version string, now time.Time) bool {
	if c.pending && c.message == "" {
		return false
	}
	c.version, c.wrote, c.lost, c.pending = version, now, false, false
	return true
}

// Overwritten notes that the field no longer has the value that was written, and which
// manager owns it now.
func (c *Conflict) Overwritten(by Manager, now time.Time) {
	held := now.Sub(c.wrote)
	switch {
	case c.message != "" && c.known && !by.Known: // the competing manager gave the field up
		*c = Conflict{version: c.version}
		return
	case c.message == "" && held > by.interval():
		return
	case !c.lost:
		c.losses++
		c.longest = max(c.longest, held)
	}
	c.lost, c.message, c.known = true, by.Message, by.Known
}

// Kept notes that the field has the value that was written. If it has without another
// write, the competing manager agrees. If it has for longer than ever before, the
// competing manager is gone.
func (c *Conflict) Kept(now time.Time) {
	if c.lost || !now.Before(c.proof()) {
		*c = Conflict{version: c.version, wrote: c.wrote}
	}
}

// MayWrite reports whether a version may be written now. A version that was not written
// yet always may. A nil conflict allows every write.
func (c *Conflict) MayWrite(version string, now time.Time) bool {
	return c == nil || c.message == "" || c.version != version || !now.Before(c.due())
}

// Next is the earliest time at which time alone changes something; zero if it does not.
func (c *Conflict) Next() time.Time {
	switch {
	case c.message == "":
		return time.Time{}
	case c.lost:
		return c.due()
	}
	return c.proof()
}

// due is when the field may be written again.
func (c *Conflict) due() time.Time {
	pause := ShortestPause
	for range c.losses - 1 {
		pause = min(2*pause, LongestPause)
	}
	return c.wrote.Add(pause)
}

// proof is when the written value has stayed for so long that the competing manager must
// have come by.
func (c *Conflict) proof() time.Time {
	return c.wrote.Add(c.longest + c.longest/4 + ShortestPause)
}
