package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/helve-ai/helve/approval"
)

// The API of approvals is the operator's: GET /api/approvals lists what waits,
// GET /api/approvals/ID shows a question, POST /api/approvals/ID answers it.

const (
	maxAnswer  = 2 << 20                // bytes of an answer
	maxWait    = 60                     // seconds that a listener may wait at a time
	stillThere = 10 * time.Second       // how long a listener counts as there that does not come back
	lookEvery  = 400 * time.Millisecond // how often what other processes ask is looked for
)

// operates reports whether a request is the operator's, and refuses it if it
// is not. Clients never answer for others, nor for themselves.
func operates(w http.ResponseWriter, r *http.Request) bool {
	who := whoOf(r.Context())
	if who != nil && (who.caller == operator || who.caller == anyone) && who.App == "" && who.Profile == "" {
		return true
	}
	failJSON(w, http.StatusForbidden, "only the operator sees and answers approvals: present the token that helve serve was given by --token or HELVE_TOKEN, or use helve approvals on its machine")
	return false
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a client that is gone misses nothing
}

func failJSON(w http.ResponseWriter, status int, why string) {
	writeJSON(w, status, map[string]string{"error": why})
}

// approvals lists questions and approvals for sessions. With all=true those
// that were answered, too; with wait=SECONDS it answers when a question waits,
// or then, and its caller counts as there to answer meanwhile.
func (d *Daemon) approvals(w http.ResponseWriter, r *http.Request) {
	if !operates(w, r) {
		return
	}
	wait := 0
	if text := r.URL.Query().Get("wait"); text != "" {
		var err error
		if wait, err = strconv.Atoi(text); err != nil || wait < 0 || wait > maxWait {
			failJSON(w, http.StatusBadRequest, "wait: want seconds from 0 to "+strconv.Itoa(maxWait))
			return
		}
	}
	all := r.URL.Query().Get("all") == "true"
	until, said := time.Now().Add(time.Duration(wait)*time.Second), time.Time{}
	for {
		says := wait > 0 && time.Since(said) > stillThere/3
		if says {
			said = time.Now()
		}
		questions, grants, err := d.questions(r.Context(), all, says)
		if err != nil {
			d.o.Log.Error("approvals cannot be read", "error", err)
			failJSON(w, http.StatusServiceUnavailable, "approvals cannot be read; the log has the reason")
			return
		}
		if len(questions) > 0 || !time.Now().Before(until) {
			writeJSON(w, http.StatusOK, map[string]any{"questions": questions, "grants": grants})
			return
		}
		look := time.NewTimer(lookEvery)
		select {
		case <-look.C:
		case <-d.ending:
			until = time.Now()
		case <-r.Context().Done():
			look.Stop()
			return
		}
		look.Stop()
	}
}

// questions returns what there is in all apps. listens: the caller is there to answer.
func (d *Daemon) questions(ctx context.Context, all, listens bool) ([]approval.Question, []approval.Grant, error) {
	questions, grants := []approval.Question{}, []approval.Grant{}
	for _, h := range d.hosts {
		t := h.live.App().Approvals
		if listens {
			if err := t.AttendFor(ctx, "api", stillThere); err != nil {
				return nil, nil, err
			}
		}
		q, err := t.List(ctx, all)
		if err != nil {
			return nil, nil, err
		}
		g, err := t.Grants(ctx)
		if err != nil {
			return nil, nil, err
		}
		questions, grants = append(questions, q...), append(grants, g...)
	}
	slices.SortStableFunc(questions, func(a, b approval.Question) int { return a.Asked.Compare(b.Asked) })
	return questions, grants, nil
}

// find returns a question, and the table that has it.
func (d *Daemon) find(w http.ResponseWriter, r *http.Request) (t *approval.Table, q approval.Question, ok bool) {
	for _, h := range d.hosts {
		t = h.live.App().Approvals
		q, err := t.Get(r.Context(), r.PathValue("id"))
		switch {
		case err == nil:
			return t, q, true
		case !errors.Is(err, approval.ErrNone):
			d.o.Log.Error("approvals cannot be read", "error", err)
			failJSON(w, http.StatusServiceUnavailable, "approvals cannot be read; the log has the reason")
			return nil, q, false
		}
	}
	failJSON(w, http.StatusNotFound, "there is no such question; GET /api/approvals lists those that wait")
	return nil, q, false
}

func (d *Daemon) approval(w http.ResponseWriter, r *http.Request) {
	if !operates(w, r) {
		return
	}
	if _, q, ok := d.find(w, r); ok {
		writeJSON(w, http.StatusOK, q)
	}
}

// A said is the body of an answer.
type said struct {
	Answer   string          `json:"answer"` // approve or deny
	Feedback string          `json:"feedback"`
	Args     json.RawMessage `json:"args"`
	Session  bool            `json:"for_session"`
}

func (d *Daemon) approve(w http.ResponseWriter, r *http.Request) {
	if !operates(w, r) {
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		failJSON(w, http.StatusUnsupportedMediaType, "an answer is JSON: send Content-Type: application/json")
		return
	}
	var s said
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAnswer))
	body.DisallowUnknownFields()
	if err := body.Decode(&s); err != nil || body.More() {
		failJSON(w, http.StatusBadRequest, `the answer cannot be read: want {"answer": "approve" or "deny", "feedback": TEXT, "args": OBJECT, "for_session": true}`)
		return
	}
	if s.Answer != "approve" && s.Answer != "deny" {
		failJSON(w, http.StatusBadRequest, `answer: want "approve" or "deny"`)
		return
	}
	if s.Answer == "approve" && whoOf(r.Context()).caller != operator {
		// What a tool runs may reach loopback, too.
		failJSON(w, http.StatusForbidden, "approving over the API takes the operator's token, and helve serve was given none: start it with HELVE_TOKEN set, or use helve approvals on its machine")
		return
	}
	t, q, ok := d.find(w, r)
	if !ok {
		return
	}
	if string(s.Args) == "null" {
		s.Args = nil
	}
	q, err := t.Answer(r.Context(), q.ID, approval.Answer{Approve: s.Answer == "approve", Session: s.Session, Args: s.Args, Feedback: s.Feedback,
		By: whoOf(r.Context()).caller.User, How: "over the API"})
	switch {
	case errors.Is(err, approval.ErrOver):
		writeJSON(w, http.StatusConflict, map[string]any{"error": err.Error(), "question": q})
	case errors.Is(err, approval.ErrBad):
		failJSON(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, approval.ErrNone):
		failJSON(w, http.StatusNotFound, err.Error())
	case err != nil:
		d.o.Log.Error("an approval cannot be answered", "error", err)
		failJSON(w, http.StatusServiceUnavailable, "the answer could not be kept; the log has the reason")
	default:
		writeJSON(w, http.StatusOK, q)
	}
}
