package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/catalog"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/sys/disk"
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
	fs.StringVar(&f.passwordFile, "password-file", "", "`file` with the password of the server (default: the environment variable "+passwordVariable+")")
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
			return usagef("--%s: %s is not a server", name, locations[len(locations)-1])
		}
	}
	return nil
}

// options builds the options from the flags and reads the password file.
func (f *connectFlags) options() (*format.ServerOptions, error) {
	o := &format.ServerOptions{Password: os.Getenv(passwordVariable), CA: f.ca, Cert: f.cert, Key: f.key, Insecure: f.insecure, Scan: f.scan}
	if f.notices != nil {
		o.Notice = func(text string) { fmt.Fprintf(f.notices, "kvferry: %s\n", text) }
	}
	if (f.cert == "") != (f.key == "") {
		return nil, usagef("--tls-cert and --tls-key go together")
	}
	if f.passwordFile != "" {
		if err := notStandard("password-file", f.passwordFile); err != nil {
			return nil, err
		}
		data, err := disk.ReadSmall(f.passwordFile, maxPassword)
		if err != nil {
			return nil, usagef("--password-file %w", err)
		}
		o.Password = strings.TrimRight(string(data), "\r\n")
	}
	if own := os.Getenv(sourcePassword); own != "" && !f.second {
		o.Password = own
	}
	for _, name := range []string{f.ca, f.cert, f.key} {
		if name == "" {
			continue
		}
		if _, err := disk.Stat(name); err != nil {
			return nil, usagef("certificate: %w", err)
		}
	}
	return o, nil
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
	rate                        sizeFlag
}

// serverFlagNames are the names of these flags.
var serverFlagNames = []string{"replace", "skip-existing", "fail-existing", "rate", "verify"}

// rateUsage describes the flag --rate.
const rateUsage = "maximum bytes per second to send, such as 20MiB; 0: no limit (default)"

// Register adds the flags to a command.
func (f *serverFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.replace, "replace", false, "overwrite keys that exist on the server")
	fs.BoolVar(&f.skip, "skip-existing", false, "skip keys that exist on the server")
	fs.BoolVar(&f.fail, "fail-existing", false, "write nothing if any of the keys exists on the server (default)")
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
		return usagef("%s do not go together: give one of them", strings.Join(given, " and "))
	}
	return nil
}

// target returns the output for the server at an address.
func (f *serverFlags) target(r format.Remote, address string, how connectFlags) (convert.Output, error) {
	work, err := r.Work(address)
	if err != nil {
		return convert.Output{}, usagef("%w", err)
	}
	how.second = true
	o, err := how.options()
	if err != nil {
		return convert.Output{}, err
	}
	o.Existing = f.existing()
	o.Rate = int64(f.rate)
	return convert.Output{Format: r.With(o), Path: work, Address: address, Create: catalog.NoStores.Create, Open: catalog.NoStores.Open,
		Verify: f.verify}, nil
}
