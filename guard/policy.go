package guard

import (
	"context"
	"fmt"
	"slices"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// A Policy judges a call and says why. Of several, the most severe verdict wins.
type Policy func(context.Context, *tool.Call) (tool.Verdict, string)

// Permit returns the stage that lets a call pass only if a policy allows it or
// wants an approval, which the approval stage then seeks. What no policy
// speaks about is denied.
func Permit(policies ...Policy) pipeline.Stage {
	const name = "policy"
	return pipeline.Stage{
		Name: name, Doc: "refuse calls that no policy allows", Judges: true,
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				verdict, reason := severest(ctx, policies, c)
				if c.Reach = nil; slices.ContainsFunc(c.Trail.Values, isURL) {
					c.Reach = reaching(policies, c, verdict, reason)
				}
				switch verdict {
				case tool.Allow:
					c.Trail.Stage, c.Trail.Reason = name, reason
				case tool.Ask:
					c.Trail.Decision, c.Trail.Stage, c.Trail.Reason = tool.Ask, name, reason
					c.Trail.Asked = append(c.Trail.Asked, reason)
				default:
					err := c.Trail.Deny(name, tool.Errorf(tool.CodePermission, "%s is not allowed: %s", c.Name, reason))
					c.Trail.Reason = reason
					return nil, err
				}
				return next(ctx, c)
			}
		},
	}
}

// severest returns the verdict of the policies about a call, and why.
func severest(ctx context.Context, policies []Policy, c *tool.Call) (tool.Verdict, string) {
	verdict, reason := tool.Silent, "no policy allows it"
	for _, p := range policies {
		if v, why := p(ctx, c); v > verdict {
			verdict, reason = v, why
		}
	}
	return verdict, reason
}

func isURL(v schema.Value) bool { return v.Role == schema.URL }

// reaching returns what judges the URLs to which a call is led, as if its
// arguments named them: they must be allowed, or asked about for the same
// reason as the call itself, which then somebody has approved.
func reaching(policies []Policy, c *tool.Call, verdict tool.Verdict, reason string) func(context.Context, string) error {
	asked, trail := *c, *c.Trail
	return func(ctx context.Context, url string) error {
		led, own := asked, trail
		led.Trail = &own
		own.Values = slices.Clone(trail.Values)
		for i := range own.Values {
			if isURL(own.Values[i]) {
				own.Values[i].Text, own.Values[i].IsString = url, true
			}
		}
		v, why := severest(ctx, policies, &led)
		switch {
		case v == tool.Allow, v == tool.Ask && verdict == tool.Ask && why == reason:
			return nil
		case v == tool.Ask:
			return fmt.Errorf("nobody was asked about it: %s; call with that URL", why)
		}
		return fmt.Errorf("it is not allowed: %s", why)
	}
}

// A Default says what becomes of calls on which no rule speaks (SPEC A1).
type Default string

// The default policies. The zero Default is Approve.
const (
	Auto       Default = "auto"        // they run
	Approve    Default = "approve"     // low-risk reads run, everything else is asked
	ApproveAll Default = "approve_all" // everything is asked
	Block      Default = "block"       // nothing runs
)

// Rules are an app's policy: lists of rules, and what holds where they are
// silent. The zero Rules approve low-risk reads, ask about other calls up to
// medium risk, and block those of high risk.
type Rules struct {
	Default                      Default
	MaxRisk                      tool.Risk // zero: medium
	Grant, Approve, Deny, Hidden []*Rule
	Constraints                  map[string]Constraint // by module

	// Module is the default policy of the tool's module; nil: none.
	Module func(*tool.Call) Policy
}

// A Constraint narrows what agents may call of one module. It does not bind
// callers that act as the app (SPEC A2).
type Constraint struct {
	Allowed []string // nil: all actions
	Blocked []string
}

// Visible is the Visibility that the rules imply: what is denied or hidden
// whatever the arguments, or lies outside a module's constraints, is not seen.
func (r *Rules) Visible(from tool.Origin, t *tool.Tool) bool {
	for _, rule := range r.Deny {
		if rule.Names(t) && !rule.Conditional() {
			return false
		}
	}
	if from.Kind.Daemon() {
		return true
	}
	for _, rule := range r.Hidden {
		if rule.Names(t) && !rule.Conditional() {
			return false
		}
	}
	c, ok := r.Constraints[t.ModuleName()]
	return !ok || c.allows(t.Action())
}

func (c Constraint) allows(action string) bool {
	if c.Allowed != nil && !anyGlob(c.Allowed, action) {
		return false
	}
	return !anyGlob(c.Blocked, action)
}

func anyGlob(patterns []string, s string) bool {
	for _, p := range patterns {
		if globName(p, s) {
			return true
		}
	}
	return false
}

// Judge is the Policy of the rules, in the order of precedence: deny, the
// module's own refusal, approve, grant, risk above the maximum, the module's
// default, the app's default (SPEC A1).
func (r *Rules) Judge(ctx context.Context, c *tool.Call) (tool.Verdict, string) {
	if rule := matching(r.Deny, c, anyValue); rule != nil {
		return tool.Deny, rule.because("denied")
	}
	if rule := matching(r.Hidden, c, anyValue); rule != nil && !c.From.Kind.Daemon() {
		return tool.Deny, rule.because("hidden")
	}
	module, moduleWhy := tool.Silent, ""
	if r.Module != nil {
		if p := r.Module(c); p != nil {
			module, moduleWhy = p(ctx, c)
		}
	}
	if module == tool.Deny {
		return tool.Deny, moduleWhy
	}
	if c.From.Kind.Daemon() {
		return tool.Allow, "the app itself calls it, and no rule denies it"
	}
	if rule := matching(r.Approve, c, anyValue); rule != nil {
		return tool.Ask, rule.because("approval is required")
	}
	if rule := matching(r.Grant, c, everyValue); rule != nil {
		return tool.Allow, rule.because("granted")
	}
	if risk, most := c.Tool.RiskLevel(), r.maxRisk(); risk > most {
		return tool.Deny, fmt.Sprintf("its risk is %s and the app's max_risk_level is %s; to use it, the operator adds it to tools.capabilities.grant or .approve", risk, most)
	}
	return r.byDefault(c, module, moduleWhy)
}

func (r *Rules) maxRisk() tool.Risk {
	if r.MaxRisk == tool.Unstated {
		return tool.Medium
	}
	return r.MaxRisk
}

func (r *Rules) byDefault(c *tool.Call, module tool.Verdict, moduleWhy string) (tool.Verdict, string) {
	risk := c.Tool.RiskLevel()
	switch r.Default {
	case Auto:
		if module != tool.Silent {
			return module, moduleWhy
		}
		return tool.Allow, "the default policy is auto"
	case Approve, "":
		if module != tool.Silent {
			return module, moduleWhy
		}
		if c.Tool.IsRead() && risk == tool.Low {
			return tool.Allow, "a low-risk read, which the default policy lets run"
		}
		return tool.Ask, fmt.Sprintf("the default policy asks about tools of %s risk (%s)", risk, effectWord(c.Tool.Effect))
	case ApproveAll:
		return tool.Ask, "the default policy asks about everything"
	case Block:
		return tool.Deny, "the default policy is block, and no rule grants it"
	}
	return tool.Deny, fmt.Sprintf("the default policy %q is not known", r.Default)
}

func effectWord(e tool.Effect) string {
	if e == tool.Unknown {
		return "its effect is unknown"
	}
	return "it " + e.String()
}
