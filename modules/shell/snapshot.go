package shell

import (
	"context"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/command"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/tool"
)

// snapshot saves the files of the root before a command runs that may change
// them (SPEC K3). It is nil for one that only reads.
func (s *shell) snapshot(ctx context.Context, c *tool.Call, in input, p *plan) (*checkpoint.Snapshot, error) {
	if s.checkpoints == nil || s.reads(in, p) {
		return nil, nil
	}
	snap, err := s.checkpoints.Snapshot(ctx, c, in.Cmd)
	if err != nil {
		return nil, guard.SaveError(c.Name, err)
	}
	return snap, nil
}

// reads reports whether a command passes as one that only reads and parses,
// whichever profile was asked for.
func (s *shell) reads(in input, p *plan) bool {
	if p.profile == command.Full {
		in.Profile = command.Passive
		_, err := s.plan(in)
		return err == nil
	}
	return p.profile == command.Passive
}
