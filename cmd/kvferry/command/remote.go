package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/redis/live"
)

// passwordVariable names the environment variable with the password of a server.
const passwordVariable = "KVFERRY_PASSWORD"

// sourcePassword names the variable for a different password of the source, or of the first of two servers.
const sourcePassword = "KVFERRY_SOURCE_PASSWORD"

// maxPassword bounds the size of a password file.
const maxPassword = 1 << 20

// connectFlags are the flags for connecting to a server.
type connectFlags struct {
	passwordFile  string
	ca, cert, key string
	insecure      bool
	scan          bool
	second        bool // the server is the second of two
	notices       io.Writer
}

// connectNames are the names of these flags.
var connectNames = []string{"password-file", "tls-ca", "tls-cert", "tls-key", "tls-insecure", "scan"}

// Register adds the flags to a command.
func (f *connectFlags) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.passwordFile, "password-file", "",
		"`file` with the password of the server (default: the environment variable "+passwordVariable+")")
	fs.StringVar(&f.ca, "tls-ca", "", "`file` with the CA certificates to trust (default: those of the system)")
	fs.StringVar(&f.cert, "tls-cert", "", "`file` with the client certificate")
	fs.StringVar(&f.key, "tls-key", "", "`file` with the key of --tls-cert")
	fs.BoolVar(&f.insecure, "tls-insecure", false, "do not verify the certificate of the server")
	fs.BoolVar(&f.scan, "scan", false, "read a server key by key (SCAN, DUMP), not as a replica")
}

// unused refuses flags for servers if no location is a server.
func unused(fs *pflag.FlagSet, names []string, locations ...string) error {
	if slices.ContainsFunc(locations, live.IsAddress) {
		return nil
	}
	for _, name := range names {
		if fs.Changed(name) {
			return cli.Usagef("--%s: %s is not a server", name, locations[len(locations)-1])
		}
	}
	return nil
}

// options builds the options from the flags and reads the password file.
func (f *connectFlags) options() (*format.ServerOptions, error) {
	o := &format.ServerOptions{Password: os.Getenv(passwordVariable), CA: f.ca, Cert: f.cert, Key: f.key, Insecure: f.insecure,
		Scan: f.scan}
	if f.notices != nil {
		o.Notice = func(text string) { fmt.Fprintf(f.notices, "kvferry: %s\n", text) }
	}
	if (f.cert == "") != (f.key == "") {
		return nil, cli.Usagef("--tls-cert and --tls-key go together")
	}
	if f.passwordFile != "" {
		var err error
		if o.Password, err = readPassword("password-file", f.passwordFile); err != nil {
			return nil, err
		}
	}
	if own := os.Getenv(sourcePassword); own != "" && !f.second {
		o.Password = own
	}
	for _, name := range []string{f.ca, f.cert, f.key} {
		if name == "" {
			continue
		}
		if _, err := disk.Stat(name); err != nil {
			return nil, cli.Usagef("certificate: %w", err)
		}
	}
	return o, nil
}

// readPassword reads the password in the file that a flag names.
func readPassword(flag, path string) (string, error) {
	if err := cli.NotStandard(flag, path); err != nil {
		return "", err
	}
	data, err := disk.ReadSmall(path, maxPassword)
	if err != nil {
		return "", cli.Usagef("--%s %w", flag, err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// reach applies the connection flags to a format for servers.
func (f *connectFlags) reach(to format.Format) (format.Format, error) {
	r, ok := to.(format.Remote)
	if !ok {
		return to, nil
	}
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	return r.With(o), nil
}

// serverFlags are the flags for writing to a server.
type serverFlags struct {
	replace, skip, fail, verify bool
	rate                        cli.SizeFlag
}

// serverFlagNames are the names of these flags.
var serverFlagNames = []string{"replace", "skip-existing", "fail-existing", "rate", "verify"}

// rateUsage describes the flag --rate.
const rateUsage = "maximum bytes per second to send, such as 20MiB; 0 for no limit (default)"

// Register adds the flags to a command.
func (f *serverFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.replace, "replace", false, "overwrite keys that exist on the server")
	fs.BoolVar(&f.skip, "skip-existing", false, "skip keys that exist on the server")
	fs.BoolVar(&f.fail, "fail-existing", false, "refuse to write if any of the keys exists on the server (default)")
	fs.BoolVar(&f.verify, "verify", false, "read the server back and compare fingerprints; it must be empty before")
	fs.Var(&f.rate, "rate", rateUsage)
}

// existing returns the policy for keys that exist on the server.
func (f *serverFlags) existing() format.Existing {
	switch {
	case f.replace:
		return format.Replace
	case f.skip:
		return format.SkipExisting
	}
	return format.FailExisting
}

// check refuses more than one policy for existing keys.
func (f *serverFlags) check(fs *pflag.FlagSet) error {
	var given []string
	for _, name := range []string{"replace", "skip-existing", "fail-existing"} {
		if fs.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return cli.Usagef("%s do not go together: give one of them", strings.Join(given, " and "))
	}
	return nil
}

// target returns the output for the server at an address.
func (f *serverFlags) target(r format.Remote, address string, how connectFlags) (convert.Output, error) {
	work, err := r.Work(address)
	if err != nil {
		return convert.Output{}, cli.Usagef("%w", err)
	}
	how.second = true
	o, err := how.options()
	if err != nil {
		return convert.Output{}, err
	}
	o.Existing = f.existing()
	o.Rate = int64(f.rate)
	return convert.Output{Format: r.With(o), Path: work, Address: address, Create: catalog.NoStores.Create,
		Open: catalog.NoStores.Open, Verify: f.verify}, nil
}

// objectFlags are the flags for access to an object store.
type objectFlags struct{ options object.Options }

// objectNames are their names.
var objectNames = []string{"s3-endpoint", "s3-region", "s3-path-style", "s3-anonymous"}

// Register adds the flags to a command.
func (f *objectFlags) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.options.Endpoint, "s3-endpoint", "", "`URL` of the server of s3:// locations (default: AWS_ENDPOINT_URL, else Amazon S3)")
	fs.StringVar(&f.options.Region, "s3-region", "", "`region` of the bucket (default: AWS_REGION, else that of the profile)")
	fs.BoolVar(&f.options.PathStyle, "s3-path-style", false, "name the bucket in the path of requests, not in the host; always on for servers other than Amazon's")
	fs.BoolVar(&f.options.Anonymous, "s3-anonymous", false, "read a public bucket without credentials")
}

// counted returns the options with the counter of the command.
func (f *objectFlags) counted(ctx context.Context) object.Options {
	o := f.options
	o.Traffic = &runOf(ctx).traffic
	return o
}

// cachePart is the part of --memory for reading ahead in an object store: one of so many.
const cachePart = 8

// mounter returns the function that makes an address readable as long as the command runs.
func (f *objectFlags) mounter(ctx context.Context, memory int64) func(string) (string, error) {
	return func(address string) (string, error) {
		return runOf(ctx).mount(ctx, address, f.counted(ctx), memory/cachePart)
	}
}

// mounts are the addresses that a command reads. Each is mounted once, however often the command looks for the dataset.
type mounts struct {
	mu      sync.Mutex
	paths   map[mountOf]string
	undo    []func()
	traffic object.Traffic
}

// mountOf is an address with the settings that lead to it.
type mountOf struct {
	address string
	options object.Options
}

func (m *mounts) mount(ctx context.Context, address string, o object.Options, memory int64) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := mountOf{address, o}
	if path, ok := m.paths[of]; ok {
		return path, nil
	}
	o.Memory = memory
	path, undo, err := object.Mount(ctx, address, o)
	if err != nil {
		return "", err
	}
	if m.paths == nil {
		m.paths = map[mountOf]string{}
	}
	m.paths[of], m.undo = path, append(m.undo, undo)
	return path, nil
}

func (m *mounts) unmount() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, undo := range m.undo {
		undo()
	}
	m.paths, m.undo = nil, nil
}

// run is a run of a command.
type run struct {
	words []string // the command line, without the name of the program
	mounts
}

// runKey is the key of the run in a command's context.
type runKey struct{}

func runOf(ctx context.Context) *run { return ctx.Value(runKey{}).(*run) }
