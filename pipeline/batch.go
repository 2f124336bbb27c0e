package pipeline

import (
	"context"
	"sync"

	"github.com/helve-ai/helve/tool"
)

// atOnce bounds how many calls of one batch run at the same time.
const atOnce = 8

// DoAll runs the calls of one reply: at the same time if every one of them is
// a parallel-safe read, else one after the other (SPEC X9). The results are in
// the order of the calls. An error means that ctx ended; the results of calls
// that did not end before are nil.
func (e *Executor) DoAll(ctx context.Context, calls []*tool.Call) ([]*tool.Result, error) {
	results := make([]*tool.Result, len(calls))
	if len(calls) < 2 || !e.parallelSafe(calls) {
		for i, c := range calls {
			var err error
			if results[i], err = e.Do(ctx, c); err != nil {
				return results, err
			}
		}
		return results, nil
	}
	errs := make([]error, len(calls))
	places := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, c := range calls {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			results[i], errs[i] = e.Do(ctx, c)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// parallelSafe reports whether every call, and every call that it would make,
// is a read that may run beside others. A call that cannot be resolved is: it
// will only be refused.
func (e *Executor) parallelSafe(calls []*tool.Call) bool {
	for _, c := range calls {
		if !e.safe(c.Name, c.Args, 0) {
			return false
		}
	}
	return true
}

func (e *Executor) safe(name string, args []byte, depth int) bool {
	t, err := e.tools.Set().Resolve(name, nil)
	switch {
	case err != nil:
		return true
	case depth > maxDepth || !t.IsRead():
		return false
	case t.Targets == nil:
		return t.ParallelSafe
	}
	for _, target := range t.Targets(args) {
		if !e.safe(target.Name, target.Args, depth+1) {
			return false
		}
	}
	return true
}
