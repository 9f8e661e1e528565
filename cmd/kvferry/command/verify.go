package command

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"kvferry/inspect"
	"kvferry/inspect/render"
	"kvferry/record"
)

const verifyHelp = `Read every row of a dataset and list what is wrong with it: records that contradict themselves,
rows that no reader shows, damaged blocks, tables that are not what the MANIFEST or their own
properties say. It goes on after a finding. Every kind of finding is described in docs/findings.md.

With --against, the dataset is compared with another instead, as kvferry diff does.
` + exitHelp

const verifyExample = `  kvferry verify /data/pika/dump
  kvferry verify --report sarif -o findings.sarif /data/pika/dump
  kvferry verify --fail-on warning --type zset /data/pika/dump
  kvferry verify /data/old --against blackwidow:/data/new`

// verifyFlags are the flags of verify.
type verifyFlags struct {
	read        ReadFlags
	report      string
	failOn      string
	maxFindings int
	files       string
	against     string
	output      string
}

// verify checks a dataset.
func (a *App) verify() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:     "verify SRC",
		Short:   "Check everything in a dataset and list what is wrong",
		Long:    verifyHelp,
		Example: verifyExample,
		Args:    exactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runVerify(cmd, &f, args[0]) },
	}
	f.read.Register(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.report, "report", "text", "form of the report: text, json, junit or sarif")
	fs.StringVar(&f.failOn, "fail-on", "error", "exit with 3 on findings of this severity or a graver one: error, warning or note")
	fs.IntVar(&f.maxFindings, "max-findings", 1000, "list at most `n` findings; all are counted")
	fs.StringVar(&f.files, "files", "auto", "a second look at the files, block by block against their properties and bounds: always, never or auto, when "+
		"the first reading gives a reason to; never also leaves out the filters of tables")
	fs.StringVar(&f.against, "against", "", "compare with the dataset at a `location` instead")
	fs.StringVarP(&f.output, "output", "o", "", outputUsage)
	return cmd
}

var reports = map[string]func(io.Writer, *render.Result) error{
	"text": render.Findings, "json": render.JSON, "junit": render.JUnit, "sarif": render.SARIF,
}

var looks = map[string]inspect.Look{"auto": inspect.Automatic, "always": inspect.Always, "never": inspect.Never}

func (a *App) runVerify(cmd *cobra.Command, f *verifyFlags, location string) error {
	print := reports[f.report]
	if print == nil {
		return usagef("--report %q: want text, json, junit or sarif", f.report)
	}
	failOn, err := record.ParseSeverity(f.failOn)
	if err != nil {
		return usagef("--fail-on: %w", err)
	}
	look, known := looks[f.files]
	if !known {
		return usagef("--files %q: want auto, always or never", f.files)
	}
	if f.maxFindings < 0 {
		return usagef("--max-findings %d: want at least 0", f.maxFindings)
	}
	if f.against != "" {
		if f.report != "text" {
			return usagef("--against and --report %s do not go together; see kvferry diff --format", f.report)
		}
		d := diffFlags{read: f.read, format: "text", max: f.maxFindings, output: f.output}
		return a.runDiff(cmd, &d, location, f.against)
	}
	began := a.Now()
	d, err := a.unopened(cmd, location, &f.read)
	if err != nil {
		return err
	}
	v, err := inspect.Verify(cmd.Context(), &inspect.VerifyOptions{Scan: *d.Scan, Root: d.Location.Path, Open: d.reopen,
		Keyspaces: d.keyspacesOf, MaxFindings: f.maxFindings, Files: look})
	if err != nil {
		return err
	}
	res := &render.Result{Verification: v, Tool: a.Version, Source: location, NowMS: d.Scan.Now.UnixMilli(),
		Seconds: a.Now().Sub(began).Seconds(), FailOn: failOn}
	if res.Format == "" {
		res.Format = d.Location.Format
	}
	if err := toOutput(cmd, f.output, func(w io.Writer) error { return print(w, res) }); err != nil {
		return err
	}
	if res.Failed() {
		return &ExitError{Code: ExitFindings}
	}
	return nil
}

// samePath reports whether rel below root is path.
func samePath(root, rel, path string) bool {
	return filepath.Clean(filepath.Join(root, rel)) == filepath.Clean(path)
}
