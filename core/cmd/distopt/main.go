// Command distopt evaluates training configurations, describes their buckets, lists what became of
// a file's keys, checks this program against reference cases, and makes and opens links.
//
// It is the only package of core that touches files, arguments and goroutines. Results go to
// standard output, remarks to standard error. Exit status: 0 done, 1 the input is wrong or a check
// failed, 2 the command line is wrong.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit statuses.
const (
	exitOK    = 0
	exitWrong = 1
	exitUsage = 2
)

// env is what a command reads and writes.
type env struct {
	stdin  io.Reader
	stdout *bufio.Writer
	stderr io.Writer
	args   arguments
}

// command is one of the program's commands.
type command struct {
	name     string
	operands string // as the usage line shows them
	least    int    // operands
	most     int
	flags    []flagSpec
	about    string
	run      func(e *env) error
}

// commands are listed in the order of the help.
func commands() []command {
	return []command{
		{"eval", "FILE", 1, 1, []flagSpec{{"json", false, "the whole result as JSON"}},
			"predict one training step: time, exposed communication, bucket use", runEval},
		{"layout", "FILE", 1, 1, []flagSpec{
			{"stage", true, "pipeline stage, 0 if not given"},
			{"rank", true, "rank of the data-parallel group whose shards are listed; several if not given"},
		}, "print the buckets of a stage as JSON, in the form of the reference cases", runLayout},
		{"import", "FILE", 1, 1, []flagSpec{{"json", false, "as JSON"}, {"yaml", false, "print the file, or what it is translated to, as YAML"}},
			"say what became of each key of a file, and what is wrong with it", runImport},
		{"oracle", "DIR", 1, 1, []flagSpec{{"json", false, "as JSON"}},
			"check this program against all reference cases below a folder", runOracle},
		{"link", "FILE [FILE_B]", 1, 2, nil, "make a link of one file, or of two to compare", runLink},
		{"open", "LINK", 1, 1, []flagSpec{{"b", false, "print configuration B"}, {"json", false, "all that the link holds, as JSON"}},
			"print the configuration that a link holds", runOpen},
		{"version", "", 0, 0, nil, "print the versions of the prediction model and the link format", runVersion},
		{"help", "[COMMAND]", 0, 1, nil, "explain a command", nil},
	}
}

// usageError is a wrong command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// errSilent ends a command with status 1 when it has said why.
var errSilent = fmt.Errorf("see above")

// run executes a command line and returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := bufio.NewWriterSize(stdout, 64<<10)
	e := &env{stdin: stdin, stdout: out, stderr: stderr}
	err := e.dispatch(args)
	if flushed := out.Flush(); err == nil && flushed != nil {
		err = fmt.Errorf("cannot write the result: %w", flushed)
	}
	switch err := err.(type) {
	case nil:
		return exitOK
	case usageError:
		fmt.Fprintf(stderr, "distopt: %s\nRun \"distopt help\" for what it can do.\n", err.text)
		return exitUsage
	default:
		if err != errSilent {
			fmt.Fprintf(stderr, "distopt: %v\n", err)
		}
		return exitWrong
	}
}

func (e *env) dispatch(args []string) error {
	if len(args) == 0 {
		return usageError{"a command is missing"}
	}
	name := args[0]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-v", "-version", "--version":
		name = "version"
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		parsed, err := parse(c, args[1:])
		if err != nil {
			return err
		}
		if parsed.help {
			c.help(e)
			return nil
		}
		e.args = parsed
		if c.run == nil {
			return e.help()
		}
		return c.run(e)
	}
	return usageError{fmt.Sprintf("%q is not a command", name)}
}

// help lists the commands, or explains one.
func (e *env) help() error {
	if len(e.args.operands) == 1 {
		for _, c := range commands() {
			if c.name == e.args.operands[0] {
				c.help(e)
				return nil
			}
		}
		return usageError{fmt.Sprintf("%q is not a command", e.args.operands[0])}
	}
	fmt.Fprint(e.stdout, "distopt shows what a sharded Adam optimizer does with a training configuration.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(e.stdout, "  distopt %-22s %s\n", c.usage(), c.about)
	}
	fmt.Fprint(e.stdout, "\nFILE is a configuration (NeMo YAML), - is standard input. Flags may stand before or after it.\n"+
		"Exit status: 0 done, 1 the input is wrong or a check failed, 2 the command line is wrong.\n")
	return nil
}

func (c command) usage() string {
	if c.operands == "" {
		return c.name
	}
	return c.name + " " + c.operands
}

func (c command) help(e *env) {
	flags := ""
	for _, f := range c.flags {
		flags += " [-" + f.name
		if f.number {
			flags += " N"
		}
		flags += "]"
	}
	fmt.Fprintf(e.stdout, "distopt %s%s\n  %s\n", c.usage(), flags, c.about)
	for _, f := range c.flags {
		name := "-" + f.name
		if f.number {
			name += " N"
		}
		fmt.Fprintf(e.stdout, "  %-10s %s\n", name, f.about)
	}
}
