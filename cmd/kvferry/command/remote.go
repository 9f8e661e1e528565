package command

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/catalog"
	"kvferry/internal/disk"
)

// passwordVariable holds the password of a server.
const passwordVariable = "KVFERRY_PASSWORD"

// serverFlags say how a server is reached and written.
type serverFlags struct {
	passwordFile  string
	ca, cert, key string
	insecure      bool

	replace, skip, fail bool
	rate                sizeFlag
}

// serverFlagNames are the names of the flags.
var serverFlagNames = []string{"password-file", "tls-ca", "tls-cert", "tls-key", "tls-insecure", "replace", "skip-existing", "fail-existing", "rate"}

// Register adds the flags to a command.
func (f *serverFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.passwordFile, "password-file", "", "`file` with the password of the server (default: the environment variable "+passwordVariable+")")
	fs.StringVar(&f.ca, "tls-ca", "", "`file` with the CA certificates to trust (default: those of the system)")
	fs.StringVar(&f.cert, "tls-cert", "", "`file` with the client certificate")
	fs.StringVar(&f.key, "tls-key", "", "`file` with the key of --tls-cert")
	fs.BoolVar(&f.insecure, "tls-insecure", false, "do not verify the certificate of the server")
	fs.BoolVar(&f.replace, "replace", false, "overwrite keys that exist on the server")
	fs.BoolVar(&f.skip, "skip-existing", false, "skip keys that exist on the server")
	fs.BoolVar(&f.fail, "fail-existing", false, "fail if a key exists on the server (default)")
	fs.Var(&f.rate, "rate", "maximum bytes per second to send to the server, such as 20MiB; 0: no limit (default)")
	cmd.MarkFlagsMutuallyExclusive("replace", "skip-existing", "fail-existing")
}

// unused refuses the flags where no server is written.
func (f *serverFlags) unused(fs *pflag.FlagSet, target string) error {
	for _, name := range serverFlagNames {
		if fs.Changed(name) {
			return usagef("--%s: %s is no server", name, target)
		}
	}
	return nil
}

// options reads what the flags name. existing is what is done about keys that are there, by name.
func (f *serverFlags) options() (o *format.ServerOptions, existing string, err error) {
	o = &format.ServerOptions{Password: os.Getenv(passwordVariable), CA: f.ca, Cert: f.cert, Key: f.key, Insecure: f.insecure, Rate: int64(f.rate)}
	if (f.cert == "") != (f.key == "") {
		return nil, "", usagef("--tls-cert and --tls-key go together")
	}
	if f.passwordFile != "" {
		data, err := disk.ReadFile(f.passwordFile)
		if err != nil {
			return nil, "", usagef("--password-file %w", err)
		}
		o.Password = strings.TrimRight(string(data), "\r\n")
	}
	for _, name := range []string{f.ca, f.cert, f.key} {
		if name == "" {
			continue
		}
		if _, err := disk.Stat(name); err != nil {
			return nil, "", usagef("certificate: %w", err)
		}
	}
	switch {
	case f.replace:
		o.Existing, existing = format.Replace, "replace"
	case f.skip:
		o.Existing, existing = format.SkipExisting, "skip"
	default:
		o.Existing, existing = format.FailExisting, "fail"
	}
	return o, existing, nil
}

// target returns the output for a server at an address.
func (f *serverFlags) target(r format.Remote, address string) (convert.Output, error) {
	work, err := r.Work(address)
	if err != nil {
		return convert.Output{}, usagef("%w", err)
	}
	o, existing, err := f.options()
	if err != nil {
		return convert.Output{}, err
	}
	return convert.Output{Format: r.With(o), Path: work, Address: address, Create: catalog.NoStores.Create, Open: catalog.NoStores.Open,
		Settings: map[string]string{"existing": existing}}, nil
}
