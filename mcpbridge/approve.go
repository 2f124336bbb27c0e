package mcpbridge

import (
	"context"
	"errors"

	"github.com/helve-ai/helve/approval"
)

// CanApprove reports whether the person at the client that makes a call can be
// asked about it.
func CanApprove(ctx context.Context) bool { return false }

// Approve asks the person at the client that makes a call.
func Approve(ctx context.Context, q approval.Question) (approval.Answer, error) {
	return approval.Answer{}, errors.New("the client cannot be asked")
}
