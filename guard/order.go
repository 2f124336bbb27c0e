// Package guard is the catalogue of the pipeline's stages, one to a file.
package guard

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/helve-ai/helve/audit"
	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/egress"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// Options are what the standard stages need.
type Options struct {
	Log       *slog.Logger
	Tools     *tool.Registry
	Visible   Visibility    // nil: every tool is visible to everyone
	Suggest   Suggest       // further suggestions for unknown names; nil: none
	Missing   Missing       // says why a name is not on offer; nil: nobody can
	Root      *root.Root    // nil: calls with path arguments are refused
	Policies  []Policy      // the most severe verdict wins; none: everything is denied
	Approver  Approver      // nil: what would be asked about is denied
	Redactor  *Redactor     // nil: the standard one
	Egress    egress.Policy // which hosts URL arguments may name
	Timeout   time.Duration // for tools that state none; zero: DefaultTimeout
	MaxResult int           // characters of a result that the caller sees; zero: DefaultMaxResult
	Spill     store.Store   // keeps what was cut off; nil: it is lost, and the marker says so
	Audit     *audit.Log    // nil: no audit

	Checkpoints *checkpoint.Keeper // saves files before calls change them; nil: nothing is saved

	Sessions   *Sessions // remembers what sessions did; nil: one of its own
	Repeats    Repeats   // what counts as repetition
	Mistakes   int       // in a row that stop a turn; zero: DefaultMistakes, negative: any number
	Limiter    *Limiter  // nil: there are no rate limits
	Middleware []Middleware
	Meter      *Meter   // authorises calls that cost money; nil: they are denied
	Counter    *Counter // of calls and tokens; nil: they are not counted
	Taint      *Taint   // what sessions got from outside; nil: nobody remembers
	Changes    *Changes // told of calls that may change something; nil: nobody is

	Now func() time.Time
}

// Standard returns the stages through which every call goes, from everywhere
// (SPEC X2). The first is the outermost: stages that work on the result stand
// first, in the reverse of the order in which the result meets them. To add a
// stage, write its file and put its line where it belongs.
func Standard(o Options) []pipeline.Stage {
	if o.Redactor == nil {
		o.Redactor = NewRedactor()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sessions == nil {
		o.Sessions = new(Sessions)
	}
	policies := o.Policies
	if o.Taint != nil && len(policies) > 0 { // it only ever asks
		policies = append(slices.Clone(policies), o.Taint.Judge)
	}
	return []pipeline.Stage{
		// on the way back
		Audit(o.Audit, o.Redactor, o.Now),
		Count(o.Counter),
		CountMistakes(o.Sessions, o.Repeats.Callers, o.Mistakes),
		Truncate(o.MaxResult, o.Spill, o.Now),
		Redact(o.Redactor),
		LabelOutside(o.Taint),
		Output(),
		// on the way in
		Amend(o.Redactor),
		Resolve(o.Tools, o.Visible, o.Suggest, o.Missing),
		Visible(o.Visible),
		Rewrite(o.Middleware),
		Validate(),
		Paths(o.Root),
		URLs(o.Egress),
		Permit(policies...),
		Rate(o.Limiter),
		Repetition(o.Sessions, o.Repeats),
		Metering(o.Meter),
		Budget(o.Meter),
		Approval(o.Approver, o.Redactor),
		Ready(o.Audit),
		Checkpoint(o.Checkpoints, o.Root),
		Around(o.Middleware, o.Changes, o.Log),
		Spending(o.Meter),
		Timeout(o.Timeout),
	}
}

// A Visibility says whether a caller may know of a tool and call it.
type Visibility func(tool.Origin, *tool.Tool) bool

// A Suggest names tools that may be meant by an unknown name.
type Suggest func(ctx context.Context, from tool.Origin, name string) []string

// A Missing says why a tool that a caller named is not on offer, if there is a
// reason that the caller may know; nil: there is none.
type Missing func(from tool.Origin, name string) *tool.Error
