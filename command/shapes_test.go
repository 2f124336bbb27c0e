package command_test

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/command"
)

// under stands for a root that the files of a row lie in: relative names that
// do not climb out of it resolve, absolute ones do not.
func under(name string) error {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return errors.New("it is outside the root")
	}
	return nil
}

// judge parses and judges, as the callers of the package do.
func judge(text string, p command.Profile) error {
	line, err := command.Parse(text)
	if err != nil {
		return err
	}
	return command.Judge(line, p, under)
}

func TestShapes(t *testing.T) {
	for _, shape := range command.Shapes() {
		t.Run(strings.ReplaceAll(shape.Names[0], " ", "_"), func(t *testing.T) {
			if len(shape.Allow) < 2 || len(shape.Refuse) < 2 {
				t.Errorf("%v has %d examples to allow and %d to refuse; two of each are needed", shape.Names, len(shape.Allow), len(shape.Refuse))
			}
			for _, text := range shape.Allow {
				if err := judge(text, shape.Profile); err != nil {
					t.Errorf("%s: %v", text, err)
				}
				if err := judge(text, command.Full); err != nil {
					t.Errorf("%s under full: %v", text, err)
				}
				if shape.Profile == command.Full && judge(text, command.Passive) == nil {
					t.Errorf("%s is permitted under passive, and so needs no shape under full", text)
				}
			}
			for _, text := range shape.Refuse {
				var refusal *command.Refusal
				if err := judge(text, shape.Profile); !errors.As(err, &refusal) {
					t.Errorf("%s: got %v, want a refusal", text, err)
				} else if refusal.Reason == "" || refusal.Construct == "" {
					t.Errorf("%s: the refusal does not say why: %+v", text, refusal)
				}
			}
		})
	}
}

func TestNamesAreThoseOfTheShapes(t *testing.T) {
	names := command.Names()
	if !slices.IsSorted(names) {
		t.Errorf("names are not sorted: %v", names)
	}
	for _, shape := range command.Shapes() {
		for _, name := range shape.Names {
			if program := strings.Fields(name)[0]; !slices.Contains(names, program) {
				t.Errorf("%s is missing from Names", program)
			}
		}
	}
	if slices.Contains(names, "rm") || slices.Contains(names, "sh") || slices.Contains(names, "env") {
		t.Errorf("names hold a program that must not be there: %v", names)
	}
}
