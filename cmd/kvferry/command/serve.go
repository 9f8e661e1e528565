package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/escape"
	"kvferry/record"
	"kvferry/serve"
	serving "kvferry/serve/command"
	"kvferry/serve/keyspace"
	"kvferry/store"
)

// clientPassword names the environment variable with the password that clients of serve have to give.
const clientPassword = "KVFERRY_REQUIREPASS"

const serveHelp = `Serve a dataset to Redis clients, read-only: redis-cli, RedisInsight and scripts read it as they read a
server. The dataset is never changed; write commands are refused.

Databases are the same as in the dataset; SELECT takes their numbers, or the names of namespaces. Keys count as
expired at the time of the start, or --now; the remaining time of other keys counts from the current time, or
--now. If a name exists under several types, clients see the first type in dump order, and with
--on-conflict rename the other types as name:type.

kvferry seeks keys in databases of Pika, Ardb, Kvrocks and SSDB. The keys of an RDB file are first sorted
in --temp-dir; append-only files are replayed there. Clients get -LOADING until that is done.

Servers can replicate the dataset: run REPLICAOF 127.0.0.1 6379 on a Redis, Valkey, KeyDB or Dragonfly
server, and REPLICAOF NO ONE when kvferry reports that it is in sync; --exit-when-synced 1 ends serve
then. Data that RDB cannot hold is a loss, as in kvferry convert: replicas are refused until --allow-loss
names its kind.

--slots serves the keys of some slots only, like a node of a Redis cluster, whose other nodes --cluster-node
names; clients are sent to them.

serve listens on 127.0.0.1. --listen with another address lets everybody who reaches it read all data: set a
password and TLS. The environment variable KVFERRY_REQUIREPASS or --requirepass-file holds the password.
SIGTERM and Ctrl-C end it.
` + cli.ExitHelp

const serveExample = `  kvferry serve /data/pika/dump
  kvferry serve --port 7000 --match 'user:*' --type hash /data/pika/dump
  kvferry serve --exit-when-synced 1 --rdb-version 10 /data/pika/dump
  kvferry serve --unix-socket /run/kvferry.sock /data/ardb`

// serveFlags are the flags of serve.
type serveFlags struct {
	read          ReadFlags
	listen        string
	port          int
	socket        string
	maxClients    int
	passwordFile  string
	cert, key, ca string
	log           string
	replicas      replicaFlags
	cluster       clusterFlags
}

// serve answers Redis clients from a dataset.
func (a *App) serve() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:     "serve SRC",
		Short:   "Serve a dataset to Redis clients, read-only",
		Long:    serveHelp,
		Example: serveExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runServe(cmd, &f, args[0]) },
	}
	f.read.source.Register(cmd, readMemory, systemTemp)
	f.read.salvages = true
	cmd.Flags().BoolVar(&f.read.salvage, "salvage", false, "serve the readable part of values with damaged or missing rows, and list the damage")
	f.read.choice.Register(cmd)
	f.read.progress.Register(cmd)
	f.read.workers = 1
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1", "`address` to listen on")
	f.port = 6379
	fs.Var(cli.Number(&f.port, 0, 65535), "port", "TCP `port`; 0 for any free port; --unix-socket alone opens no port")
	fs.StringVar(&f.socket, "unix-socket", "", "also listen on a Unix socket at this `path`; only its owner may connect")
	f.maxClients = 10000
	fs.Var(cli.Number(&f.maxClients, 1, 1000000), "max-clients", "refuse more than `n` connections at a time, 1 to 1000000")
	fs.StringVar(&f.passwordFile, "requirepass-file", "", "`file` with the password of clients (default: the environment variable "+clientPassword+")")
	fs.StringVar(&f.cert, "listen-tls-cert", "", "`file` with the certificate of this server, for TLS")
	fs.StringVar(&f.key, "listen-tls-key", "", "`file` with the key of --listen-tls-cert")
	fs.StringVar(&f.ca, "listen-tls-ca", "", "`file` with the CA that must have signed the certificates of clients")
	cli.Choose(fs, &f.log, "log", cli.Plain("text", "json"), "form of the messages on standard error")
	f.replicas.Register(a, cmd)
	f.cluster.Register(cmd)
	return cmd
}

func (a *App) runServe(cmd *cobra.Command, f *serveFlags, location string) (err error) {
	password, config, err := f.access()
	if err != nil {
		return err
	}
	listeners, err := f.listeners(config, cmd.Flags().Changed("port"))
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	nodes, err := f.cluster.cluster(listeners, config != nil)
	if err != nil {
		return err
	}
	if nodes != nil && f.replicas.conflict.rename {
		return cli.Usagef("--on-conflict rename does not go with --slots: the new names are in other slots")
	}
	show := cli.NewProgress(cmd, &f.read.progress, a.Terminal)
	defer func() { show.End(err) }()
	notes, shared := &noted{w: show, cmd: cmd, of: []string{location}}, new(convert.Shared)
	d, err := a.unopened(cmd, location, &f.read)
	if err != nil {
		return err
	}
	d.options.Lookups, d.options.Options.OpenDamaged, d.options.Options.Hot = true, true, &store.Hot{Max: f.read.source.Memory() / 4}
	log := f.logger(cmd.ErrOrStderr())
	ctx, done := context.WithCancel(cmd.Context())
	m, err := a.master(cmd, f, location, d, shared, log, done)
	if err != nil {
		done()
		return err
	}
	server, more := &serving.Server{Password: password, Now: d.Scan.Now, Version: a.Build.String(), Port: portOf(listeners),
		MaxClients: f.maxClients, Memory: f.read.source.Memory(), TempDir: f.read.source.TempDir(), Info: m.Info}, []serving.Functions{m.Commands()}
	if nodes != nil {
		server.Route, more, d.Scan.Selection.Where = nodes.Route, append(more, nodes.Commands()), nodes.Serves
	}
	if f.read.source.now.IsZero() {
		server.Clock = a.Now
	}
	s := serve.New(server, more...)
	s.Log = log
	served := make(chan error, 1)
	go func() { // clients are told that the dataset is loading
		defer done()
		served <- s.Serve(ctx, listeners...)
	}()
	closing := func() error { return nil }
	defer func() {
		done()
		if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) { // while the dataset was loading
			err = nil
		}
		err = errors.Join(err, <-served, m.Close(), closing())
		if err == nil && cmd.Context().Err() != nil {
			log("stopped")
		}
	}()
	preparing(show, nil, d)
	err = d.open(ctx, func(found record.Finding) {
		notes.report(found)
		shared.Report(found)
	})
	if err != nil {
		return f.read.hint(err)
	}
	closing = d.Opened.Source.Close
	keys, err := keyspace.New(ctx, d.Scan)
	show.End(err)
	if err != nil {
		return err
	}
	keys.Reopen, keys.Rename, keys.Salvage = d.again, f.replicas.conflict.rename, f.read.salvage
	closing = func() error { return errors.Join(keys.Close(), d.Opened.Source.Close()) }
	if nodes != nil {
		if err := single(keys); err != nil {
			return err
		}
	}
	s.Open(keys)
	f.tellHidden(ctx, keys, d, s.Log)
	if err := f.welcome(cmd, d, keys.Databases(), listeners, password != ""); err != nil {
		return err
	}
	if a.Terminal && show.Mode == "bar" {
		tick := time.NewTicker(idleEvery)
		defer tick.Stop()
		go idle(ctx, tick.C, s, m)
	}
	<-ctx.Done()
	return nil
}

// closeAll closes listeners. They are closed already, unless the dataset could not be opened.
func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// hiddenWait is how long the start waits for the number of hidden records; a large dataset takes longer to count.
const hiddenWait = 3 * time.Second

// tellHidden reports how many records clients do not see because their names belong to records of other types, and the
// flag that shows them.
func (f *serveFlags) tellHidden(ctx context.Context, keys *keyspace.Keyspace, d *Dataset, log func(string)) {
	if f.replicas.conflict.rename || !d.Found.Format.Limits().SameName {
		return
	}
	flag := "--on-conflict rename shows the other types as name:type"
	if f.cluster.slots != "" {
		flag = "--type shows only one type"
	}
	counted := keys.Hidden(func(hidden, all int64, exact bool) {
		least := ""
		if !exact {
			least = "at least "
		}
		if hidden > 0 {
			log(fmt.Sprintf("clients do not see %s%s of %s: if a name exists under several types, they see only the first type; %s",
				least, record.Number(hidden), record.Count(all, "record"), flag))
		}
	})
	select {
	case <-counted:
	case <-time.After(hiddenWait):
	case <-ctx.Done():
	}
}

// access reads the password and the certificates.
func (f *serveFlags) access() (password string, config *tls.Config, err error) {
	password = os.Getenv(clientPassword)
	if f.passwordFile != "" {
		if password, err = readPassword("requirepass-file", f.passwordFile); err != nil {
			return "", nil, err
		}
		if password == "" {
			return "", nil, cli.Usagef("--requirepass-file %s: it is empty", f.passwordFile)
		}
	}
	if (f.cert == "") != (f.key == "") {
		return "", nil, cli.Usagef("--listen-tls-cert and --listen-tls-key go together")
	}
	if f.cert == "" {
		if f.ca != "" {
			return "", nil, cli.Usagef("--listen-tls-ca goes with --listen-tls-cert")
		}
		return password, nil, nil
	}
	config, err = f.tls()
	return password, config, err
}

func (f *serveFlags) tls() (*tls.Config, error) {
	var files [3][]byte
	for i, name := range []string{f.cert, f.key, f.ca} {
		if name == "" {
			continue
		}
		data, err := disk.ReadSmall(name, maxPassword)
		if err != nil {
			return nil, cli.Usagef("%w", err)
		}
		files[i] = data
	}
	pair, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return nil, cli.Usagef("%s: %w", f.cert, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(files[2]) {
			return nil, cli.Usagef("%s: no certificate in it", f.ca)
		}
	}
	return config, nil
}

// listeners opens the addresses to listen on. With a Unix socket the port has to be asked for.
func (f *serveFlags) listeners(config *tls.Config, port bool) (out []net.Listener, err error) {
	if port || f.socket == "" {
		network := "tcp"
		if ip := net.ParseIP(f.listen); ip != nil && ip.To4() != nil {
			network = "tcp4" // 0.0.0.0 would be IPv6, too
		}
		l, err := net.Listen(network, net.JoinHostPort(f.listen, strconv.Itoa(f.port)))
		if err != nil {
			return nil, fmt.Errorf("%w; choose another --port or --listen", err)
		}
		if config != nil {
			l = tls.NewListener(l, config)
		}
		out = append(out, l)
	}
	if f.socket != "" {
		l, err := listenUnix(f.socket)
		if err != nil {
			for _, l := range out {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// portOf returns the TCP port of the listeners; 0 if they have none.
func portOf(listeners []net.Listener) int {
	for _, l := range listeners {
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			return addr.Port
		}
	}
	return 0
}

// welcome prints the addresses, what to type, and the numbers and names of databases.
func (f *serveFlags) welcome(cmd *cobra.Command, d *Dataset, dbs []serving.Database, listeners []net.Listener, password bool) error {
	out := new(strings.Builder)
	var names []string
	for _, db := range dbs {
		name := strconv.Itoa(db.Number)
		if db.Name != name {
			name += " (" + db.Name + ")"
		}
		names = append(names, name)
	}
	fmt.Fprintf(out, "serving %s %s, read-only; databases: %s\n", d.Found.Format.Name(), escape.Text(d.Found.Location.Path), escape.Text(strings.Join(names, ", ")))
	more, cluster := "", ""
	if password {
		more = " --askpass"
	}
	if f.cluster.slots != "" {
		cluster = " -c"
	}
	for _, l := range listeners {
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			secure := ""
			if f.cert != "" {
				secure = " --tls"
			}
			host := addr.IP
			if host.IsUnspecified() {
				host = net.IPv4(127, 0, 0, 1)
			}
			fmt.Fprintf(out, "  redis-cli%s -h %s -p %d%s%s\n", cluster, host, addr.Port, secure, more)
			if !addr.IP.IsLoopback() && (!password || f.cert == "") {
				f.logger(cmd.ErrOrStderr())(addr.String() + ": everybody who reaches this address can read all data; --requirepass-file and --listen-tls-cert protect it")
			}
			continue
		}
		fmt.Fprintf(out, "  redis-cli -s %s%s\n", escape.Text(l.Addr().String()), more)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), out.String())
	return err
}

// logger returns a function that prints messages.
func (f *serveFlags) logger(w io.Writer) func(string) {
	return func(text string) {
		if f.log == "json" {
			line, _ := json.Marshal(struct { // strings cannot fail
				Time    string `json:"time"`
				Message string `json:"message"`
			}{time.Now().UTC().Format(time.RFC3339), text})
			fmt.Fprintf(w, "%s\n", escape.JSON(line))
			return
		}
		fmt.Fprintf(w, "kvferry: %s\n", escape.Text(text))
	}
}

// listenUnix listens on a Unix socket that only its owner can connect to. It replaces one that nobody listens on.
func listenUnix(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		if conn, dial := net.DialTimeout("unix", path, time.Second); dial == nil {
			return nil, errors.Join(fmt.Errorf("%s: a server listens there", path), conn.Close())
		}
		if info, stat := disk.Lstat(path); stat != nil || info.Mode()&os.ModeSocket == 0 {
			return nil, err
		}
		if err := disk.Remove(path); err != nil {
			return nil, err
		}
		if l, err = net.Listen("unix", path); err != nil {
			return nil, err
		}
	}
	if err := disk.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
