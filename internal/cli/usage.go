package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helve-ai/helve/schema"
)

// wrongLine says of a command line that was rejected what is wrong with it and
// what would be right. Other errors come back as they are.
func wrongLine(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var bare *pflag.ValueRequiredError
	var garbled *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		return usage("%v%s", unknown, didYouMean(flagsNear(cmd, unknown.GetSpecifiedName())))
	case errors.As(err, &invalid):
		return usage("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid.GetFlag()))
	case errors.As(err, &bare), errors.As(err, &garbled):
		return usage("%v", err)
	}
	if names, ok := strings.CutPrefix(err.Error(), "required flag(s) "); ok {
		missing := "--" + strings.ReplaceAll(strings.Trim(strings.TrimSuffix(names, " not set"), `"`), `", "`, ", --")
		return usage("%s is missing; write %s", missing, cmd.UseLine())
	}
	if isUnknownCommand(err) {
		return unknownCommand(cmd, err)
	}
	return err
}

func isUnknownCommand(err error) bool { return strings.HasPrefix(err.Error(), "unknown command ") }

// unknownCommand says which command could be meant by one that there is not.
// An app file in its place is told which commands take one.
func unknownCommand(cmd *cobra.Command, err error) error {
	quoted, _, _ := strings.Cut(err.Error(), " for ")
	name := strings.Trim(strings.TrimPrefix(quoted, "unknown command "), `"`)
	if ext := filepath.Ext(name); !cmd.HasParent() && (ext == ".yaml" || ext == ".yml") {
		return usage("%s is no command; these take an app file: helve app check %[1]s, helve run %[1]s TASK", name)
	}
	if !cmd.HasSubCommands() {
		return usage("%s takes no argument %q", cmd.CommandPath(), name)
	}
	near := schema.Closest(name, subcommands(cmd), 2)
	if len(near) == 0 {
		cmd.SuggestionsMinimumDistance = 2
		near = cmd.SuggestionsFor(name)
	}
	return usage("unknown command %q for %q%s", name, cmd.CommandPath(), didYouMean(near))
}

func subcommands(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

func flagsNear(cmd *cobra.Command, name string) []string {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	near := schema.Closest(name, names, 2)
	for i, n := range near {
		near[i] = "--" + n
	}
	return near
}

func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// wanted says what a flag takes.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration, such as 30s or 2h"
	}
	return "another value"
}

// checkArguments lets every command say which argument it lacks, or which it
// has too many, rather than how many there are.
func checkArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		checkArguments(sub)
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var coded *codedError
		if err == nil || errors.As(err, &coded) || isUnknownCommand(err) {
			return err
		}
		return miscounted(cmd, args)
	}
}

// miscounted tells the argument of the usage line that is missing, or the first
// one that is too many.
func miscounted(cmd *cobra.Command, args []string) error {
	_, rest, _ := strings.Cut(cmd.Use, " ")
	names := strings.Fields(rest)
	line := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	if len(args) < len(names) {
		return usage("%s is missing; write %s", names[len(args)], line)
	}
	what := fmt.Sprintf("the argument %q is too many", args[len(names)])
	if len(names) > 0 && names[len(names)-1] == "[ARGS]" {
		what += "; quote the JSON as one argument"
	}
	return usage("%s; write %s", what, line)
}
