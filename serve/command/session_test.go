package command_test

import (
	"strconv"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/serve"
	"kvferry/serve/command"
	"kvferry/serve/command/fake"
)

// TestTransactions: EXEC replies to the commands since MULTI, one that is refused ends the transaction, and what a
// connection keeps is given back. The replies are those of Redis 7.0.
func TestTransactions(t *testing.T) {
	s, _ := fake.New(t, "string s x", "hash h f=1", "list l a")
	c := fake.NewCaller(t, s)
	const queued, aborted = `+"QUEUED"`, `-"EXECABORT Transaction discarded because of previous errors."`
	c.Check("EXEC", `-"ERR EXEC without MULTI"`, "DISCARD", `-"ERR DISCARD without MULTI"`, "WATCH s h", `+"OK"`, "UNWATCH", `+"OK"`,
		"MULTI", `+"OK"`, "MULTI", `-"ERR MULTI calls can not be nested"`, "GET s", queued, "HGETALL h", queued, "GET l", queued, "WATCH s", `-"ERR WATCH inside MULTI is not allowed"`,
		"EXEC", `*3[$"x" *2[$"f" $"1"] -"WRONGTYPE Operation against a key holding the wrong kind of value"]`,
		"MULTI", `+"OK"`, "EXEC", `*"0"`,
		"MULTI", `+"OK"`, "GET s", queued, "DISCARD", `+"OK"`, "GET s", `$"x"`)
	for _, wrong := range []string{"NONE", "GET", "SET s y", "MONITOR", "SUBSCRIBE a", "CONFIG none", "CLIENT GETNAME x"} {
		c.Do("MULTI")
		if got := c.Do(wrong); got.Kind != '-' {
			t.Errorf("%s in a transaction: %s", wrong, got)
		}
		c.Check("GET s", queued, "EXEC", aborted)
	}
	c.Check("MULTI", `+"OK"`, "GET s", queued, "RESET", `+"RESET"`, "GET s", `$"x"`)
	c.Do("MULTI")
	for range 3 { // more than the requests of all clients may have
		c.Do("ECHO " + strings.Repeat("x", 3<<20))
	}
	c.Check("EXEC", aborted)
	c.Do("MULTI")
	c.Do("ECHO " + strings.Repeat("x", 3<<20))
	s.Leave(c.Client)
	c = fake.NewCaller(t, s)
	c.Do("MULTI")
	c.Check("ECHO "+strings.Repeat("x", 7<<20), queued)
}

// TestSilence: channels, monitors and tracking are accepted, and nothing follows.
func TestSilence(t *testing.T) {
	s, _ := fake.New(t, "string s x")
	c := fake.NewCaller(t, s)
	c.Check("SUBSCRIBE a", `*3[$"subscribe" $"a" :"1"]`, "PSUBSCRIBE x*", `*3[$"psubscribe" $"x*" :"2"]`,
		"GET s", `-"ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"`,
		"PING", `*2[$"pong" $""]`, "PING x", `*2[$"pong" $"x"]`, "UNSUBSCRIBE", `*3[$"unsubscribe" $"a" :"1"]`, "PUNSUBSCRIBE x*", `*3[$"punsubscribe" $"x*" :"0"]`,
		"UNSUBSCRIBE", `*3[$"unsubscribe" $"-1" :"0"]`, "PUBLISH a b", `:"0"`, "PUBSUB NUMSUB a", `*2[$"a" :"0"]`, "PUBSUB CHANNELS", `*"0"`, "PUBSUB CHANNELS a", `*"0"`,
		"PUBSUB CHANNELS a b", `-"ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP."`, "MONITOR", `+"OK"`,
		"CLIENT GETREDIR", `:"-1"`, "CLIENT TRACKING ON", `+"OK"`, "CLIENT TRACKINGINFO", `*6[$"flags" *1[$"on"] $"redirect" :"0" $"prefixes" *"0"]`,
		"CLIENT TRACKING x", `-"ERR syntax error"`, "CLIENT TRACKING ON PREFIX a", `-"ERR PREFIX option requires BCAST mode to be enabled"`,
		"CLIENT TRACKING ON OPTIN", `+"OK"`, "CLIENT CACHING YES", `+"OK"`, "CLIENT CACHING NO", `-"ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."`,
		"CLIENT TRACKING OFF", `+"OK"`, "PING", `+"PONG"`)
	c.Do("HELLO 3")
	c.Check("SUBSCRIBE a", `>3[$"subscribe" $"a" :"1"]`, "GET s", `$"x"`, "RESET", `+"RESET"`, "PING", `+"PONG"`)
}

// TestClientLists: filters of CLIENT LIST and CLIENT KILL select, and other arguments are refused as Redis 7.0 refuses them.
func TestClientLists(t *testing.T) {
	s, _ := fake.New(t)
	c, other := fake.NewCaller(t, s), fake.NewCaller(t, s)
	other.Do("SUBSCRIBE a")
	for line, ids := range map[string]string{"CLIENT LIST": "12", "CLIENT LIST TYPE normal": "1", "CLIENT LIST TYPE pubsub": "2", "CLIENT LIST TYPE slave": "",
		"CLIENT LIST ID 2": "2", "CLIENT LIST ID 7 1": "1"} {
		got := ""
		for row := range strings.Lines(c.Do(line).Text) {
			got += row[len("id="):strings.IndexByte(row, ' ')]
		}
		if got != ids {
			t.Errorf("%s: %s, want %s", line, got, ids)
		}
	}
	c.Check("CLIENT LIST foo", `-"ERR syntax error"`, "CLIENT LIST TYPE", `-"ERR syntax error"`, "CLIENT LIST TYPE x", `-"ERR Unknown client type 'x'"`,
		"CLIENT LIST TYPE normal x", `-"ERR syntax error"`, "CLIENT LIST ID x", `-"ERR Invalid client ID"`, "CLIENT LIST ID 0", `-"ERR Invalid client ID"`,
		"CLIENT KILL ID x", `-"ERR client-id should be greater than 0"`, "CLIENT KILL USER no", `-"ERR No such user 'no'"`, "CLIENT KILL SKIPME x", `-"ERR syntax error"`,
		"CLIENT KILL TYPE pubsub ID 1", `:"0"`, "CLIENT KILL TYPE pubsub ID 2", `:"1"`, "CLIENT KILL ID 1", `:"0"`, "CLIENT KILL ID 1 SKIPME no", `:"1"`, "CLIENT KILL 1.1.1.1:1", `-"ERR No such client"`,
		"CLIENT none", `-"ERR unknown subcommand 'none'. Try CLIENT HELP."`)
	closed := 0
	c.Client.Kill = func() { closed++ }
	c.Check("CLIENT KILL ID 1 SKIPME no", `:"1"`, "CLIENT KILL SKIPME yes ID 1", `:"0"`, "CLIENT KILL TYPE normal", `:"0"`)
	if closed != 1 {
		t.Errorf("a client that ends itself was closed %d times", closed)
	}
	for _, name := range []string{"CLIENT", "COMMAND", "CONFIG", "MEMORY", "OBJECT", "XINFO", "PUBSUB", "SCRIPT", "FUNCTION", "ACL", "LATENCY", "SLOWLOG", "MODULE", "CLUSTER"} {
		if got := c.Do(name + " HELP").String(); !strings.Contains(got, name+" <subcommand> [<arg> [value] [opt] ...]. Subcommands are:") || !strings.HasSuffix(got, `+"HELP"]`) {
			t.Errorf("%s HELP: %s", name, got)
		}
	}
}

// TestRefusals: what serve does not do is refused with the reason, and nothing is unknown to it that Redis has.
func TestRefusals(t *testing.T) {
	s, _ := fake.New(t, "string s x")
	c := fake.NewCaller(t, s)
	for line, want := range map[string]string{"EVAL x 0": "runs no scripts", "EVAL_RO x 0": "runs no scripts", "FCALL_RO f 0": "runs no scripts", "SCRIPT LOAD x": "runs no scripts",
		"XGROUP CREATE s g 0": "READONLY", "SAVE": "the dataset is on disk", "BGSAVE": "the dataset is on disk", "REPLICAOF no one": "run REPLICAOF on the server",
		"SHUTDOWN": "SIGTERM", "DEBUG SLEEP 0": "kvferry explain", "FUNCTION LOAD x": "READONLY", "ACL DRYRUN default get": "wrong number", "ACL CAT none": "Unknown category 'none'"} {
		if got := c.Do(line); got.Kind != '-' || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	c.Check("SLOWLOG GET -2", `-"ERR count should be greater than or equal to -1"`, "SLOWLOG GET -1", `*"0"`, "ACL LOG x", `-"ERR value is not an integer or out of range"`,
		"ACL LOG RESET", `+"OK"`, "ACL LOG 5", `*"0"`, "WAIT x 0", `-"ERR value is not an integer or out of range"`, "WAIT 0 -1", `-"ERR timeout is negative"`, "WAIT 0 0", `:"0"`,
		"CLIENT PAUSE 1 none", `-"ERR CLIENT PAUSE mode must be WRITE or ALL"`, "CLIENT UNBLOCK 1 none", `-"ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"`,
		"SCRIPT FLUSH none", `-"ERR SCRIPT FLUSH only support SYNC|ASYNC option"`, "READONLY", `-"ERR This instance has cluster support disabled"`)
	c.Check("ACL DRYRUN default get s", `+"OK"`, "ACL DRYRUN default set s x", `$"User default has no permissions to run the 'set' command"`, "ACL GETUSER none", `$"-1"`,
		"ACL GETUSER default", `*12[$"flags" *2[$"on" $"nopass"] $"passwords" *"0" $"commands" $"+@all -@write" $"keys" $"~*" $"channels" $"&*" $"selectors" *"0"]`,
		"COMMAND DOCS get none", `*2[$"get" *6[$"summary" $"Get the value of a key" $"since" $"1.0.0" $"group" $"string"]]`, "LATENCY HISTOGRAM get", `*"0"`, "MEMORY USAGE s", `:"56"`)
	if got, n := c.Do("COMMAND DOCS"), c.Do("COMMAND COUNT").Text; strconv.Itoa(len(got.Items)/2) != n {
		t.Errorf("COMMAND DOCS has %d items, want 2 for each of %s commands", len(got.Items), n)
	}
	if got := c.Do("ACL CAT geo").String(); !strings.Contains(got, `$"geosearch"`) || strings.Contains(got, `$"get"`) {
		t.Errorf("ACL CAT geo: %s", got)
	}
	c.Do("GET")
	if got := c.Do("INFO commandstats").Text; !strings.Contains(got, "cmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0\r\n") {
		t.Error(got)
	}
}

// TestCommandTable: clients find the keys of every command, those of subcommands and those that follow their number, too.
// The replies are those of Redis 7.0.
func TestCommandTable(t *testing.T) {
	s, _ := fake.New(t)
	c := fake.NewCaller(t, s)
	c.Check("COMMAND INFO memory|usage none|x config|none", `*3[*10[$"memory|usage" :"-3" *1[+"readonly"] :"2" :"2" :"1" *"0" *"0" *"0" *"0"] *"-1" *"-1"]`,
		"COMMAND GETKEYS memory usage k", `*1[$"k"]`, "COMMAND GETKEYS object encoding k", `*1[$"k"]`, "COMMAND GETKEYS xinfo stream k", `*1[$"k"]`,
		"COMMAND GETKEYS xgroup destroy k g", `*1[$"k"]`, "COMMAND GETKEYS lmpop 2 a b left", `*2[$"a" $"b"]`, "COMMAND GETKEYS zunionstore d 2 a b", `*3[$"d" $"a" $"b"]`,
		"COMMAND GETKEYS xreadgroup group g c streams a b 1 2", `*2[$"a" $"b"]`, "COMMAND GETKEYS eval x 0", `*"0"`,
		"COMMAND GETKEYS object help", `-"ERR The command has no key arguments"`, "COMMAND GETKEYS object none k", `-"ERR Invalid command specified"`,
		"COMMAND LIST FILTERBY PATTERN HG*L", `*2[$"hgetall" $"hgetdel"]`, "COMMAND LIST FILTERBY ACLCAT hyperloglog", `*3[$"pfadd" $"pfcount" $"pfmerge"]`,
		"COMMAND LIST FILTERBY ACLCAT none", `*"0"`, "COMMAND LIST FILTERBY MODULE x", `*"0"`, "COMMAND LIST FILTERBY none x", `-"ERR syntax error"`, "COMMAND LIST PATTERN", `-"ERR syntax error"`,
		"COMMAND DOCS slowlog|len", `*2[$"slowlog|len" *6[$"summary" $"Get the slow log's length" $"since" $"2.2.12" $"group" $"server"]]`,
		"COMMAND DOCS slowlog|x", `*"0"`, "CONFIG|GET x", `-"ERR unknown command 'CONFIG|GET', with args beginning with: 'x' "`)
	for _, cmd := range c.Do("COMMAND").Items {
		if cmd.Items[0].Text == "memory" && len(cmd.Items[9].Items) != 5 {
			t.Errorf("subcommands of MEMORY: %s", cmd.Items[9])
		}
		if flags := cmd.Items[2].String(); cmd.Items[0].Text == "bzmpop" && flags != `*3[+"write" +"blocking" +"movablekeys"]` {
			t.Errorf("flags of BZMPOP: %s", flags)
		}
	}
	for _, name := range c.Do("COMMAND LIST").Items { // each has a document
		if got := c.Do("COMMAND DOCS " + name.Text); len(got.Items) != 2 || got.Items[1].Items[3].Text == "" && !strings.HasSuffix(name.Text, "|help") {
			t.Errorf("COMMAND DOCS %s: %s", name.Text, got)
		}
	}
}

// TestLoading: while the dataset is loading, commands on connections and the server are answered as Redis answers them.
func TestLoading(t *testing.T) {
	s := &command.Server{}
	s.Init(serve.Commands()...)
	c := fake.NewCaller(t, s)
	const loading = `-"LOADING kvferry is loading the dataset"`
	c.Check("CLIENT SETNAME x", `+"OK"`, "CLIENT SETINFO lib-name x", `+"OK"`, "CONFIG GET save", `*2[$"save" $""]`, "ACL WHOAMI", `$"default"`, "SLOWLOG LEN", `:"0"`,
		"PUBSUB NUMPAT", `:"0"`, "LATENCY LATEST", `*"0"`, "SELECT 3", `+"OK"`, "GET s", loading, "PING", loading, "MEMORY STATS", loading, "OBJECT ENCODING s", loading,
		"FUNCTION LIST", loading, "DBSIZE", loading, "MULTI", `+"OK"`, "GET s", loading, "EXEC", `-"EXECABORT Transaction discarded because of previous errors."`)
}

// TestFunctions: libraries of the dataset are listed, with the functions whose names stand in their code.
func TestFunctions(t *testing.T) {
	s, f := fake.New(t)
	const code = "#!lua name=lib\nredis.register_function('one', f)\nredis.register_function{function_name='two', callback=f}"
	f.Records["FUNCTION lib"] = &fake.Record{Header: record.Header{Key: []byte("FUNCTION lib"), Type: record.Other, Keyless: record.Library}, Elems: []record.Element{{Value: []byte(code)}}}
	c := fake.NewCaller(t, s)
	const one, two = `*6[$"name" $"one" $"description" $"-1" $"flags" *"0"]`, `*6[$"name" $"two" $"description" $"-1" $"flags" *"0"]`
	c.Check("FUNCTION LIST", `*1[*6[$"library_name" $"lib" $"engine" $"LUA" $"functions" *2[`+one+" "+two+`]]]`, "FUNCTION LIST LIBRARYNAME x*", `*"0"`,
		"FUNCTION LIST x", `-"ERR Unknown argument x"`, "FUNCTION STATS", `*4[$"running_script" $"-1" $"engines" *2[$"LUA" *4[$"libraries_count" :"1" $"functions_count" :"2"]]]`)
	delete(f.Records, "FUNCTION lib")
	c.Check("FUNCTION DUMP", `$"\n\x00]\x9b\\@\x0f\x7f\xa2\xda"`)
}
