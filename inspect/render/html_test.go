package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kvferry/inspect"
	"kvferry/inspect/stats"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// pageStats returns statistics with content that could break a page.
func pageStats() *stats.Result {
	sizes := func(values ...int64) stats.Distribution {
		var h stats.Histogram
		for _, v := range values {
			h.Add(v)
		}
		return h.Distribution()
	}
	s := &stats.Result{Source: "/data/<pika>",
		Selected: inspect.Selected{Filters: filter.Conditions{"sample": {"100"}, "match": {"b:*"}},
			Expired: "keep"}, Format: "nemo", Databases: []string{"0", "1"}, NowMS: 1700000000000}
	for i, t := range []record.Type{record.String, record.Hash, record.List, record.Set, record.ZSet, record.Stream} {
		n := int64(i + 1)
		s.Types = append(s.Types, stats.Type{DB: "0", Type: t,
			Sum: stats.Sum{Records: 100 * n, Elements: 1000 / n, Bytes: 5000 * n * n}, Disk: 4000 * n,
			Expiring: n, Expired: i64(t == record.Hash), Shared: t == record.Stream,
			Sizes: sizes(1, 10, 100, 1000*n, 100000), Lengths: sizes(0, 1, n, 1<<20), KeySizes: sizes(3, 9)})
	}
	s.Expiry = []stats.ExpiryBucket{{Name: "expired", Sum: stats.Sum{Records: 1}}, {Name: "within a day",
		Sum: stats.Sum{Records: 20, Bytes: 512}}, {Name: "never", Sum: stats.Sum{Records: 2000, Bytes: 2048}}}
	for i, key := range []string{"</script><script>alert(1)</script>", "\xff\x00binary", "用户:1", "tab\there", `quote " and \`} {
		s.TopBytes = append(s.TopBytes, stats.BigKey{DB: "0", Type: record.Hash, Key: []byte(key), Bytes: int64(900 - i),
			Elements: int64(i), ExpireMS: int64(i) * 1e12})
	}
	s.TopElements = s.TopBytes[:2]
	s.Prefixes = pagePrefixes(s.TopBytes)
	s.Types[1].Largest = s.TopBytes[1:2]
	s.Deletable = []stats.Deletable{{Why: "no-expiry", Pattern: []byte("<b>:#"), Records: 2, Of: 90, Bytes: 99,
		Command: []string{"kvferry", "keys", "/data/<pika>", "--match", "<b>:*"}}}
	g := stats.Garbage{Keyspace: "hash", Bytes: 1000, Freed: 300}
	g.Rows[record.Copied], g.Rows[record.Stale], g.Rows[record.Orphan], g.Entries, g.Visible, g.Superseded, g.Tombstones = 70, 10,
		5, 100, 85, 10, 5
	s.Garbage = []stats.Garbage{g, {Keyspace: "kv"}}
	s.Files = stats.Files{Levels: []stats.Level{{Keyspace: "hash/default", Level: 0, Files: 2, Bytes: 100, Entries: 10,
		Codecs: []string{"snappy"}},
		{Keyspace: "hash/default", Level: 6, Files: 20, Bytes: 10000, Entries: 1000, Deletes: 3, Codecs: []string{"none", "zlib"}}},
		Blobs: []stats.Level{{Keyspace: "hash/default", Level: -1, Files: 3, Bytes: 4096, Entries: 7, Garbage: 2048,
			Codecs: []string{"lz4"}}},
		Logs: stats.Level{Files: 1, Bytes: 50}}
	return s
}

// pagePrefixes returns prefixes named like these keys, three levels of them.
func pagePrefixes(names []stats.BigKey) *stats.Prefix {
	prefix := func(pattern string, records int64, below ...*stats.Prefix) *stats.Prefix {
		p := &stats.Prefix{Pattern: []byte(pattern), Rank: 1, Disk: 50 * records, Children: below}
		p.Types[record.Hash] = stats.Sum{Records: records, Elements: 2 * records, Bytes: 100 * records}
		p.Expiry[2], p.Largest = stats.Sum{Records: records / 2, Bytes: 50 * records}, names[0]
		if p.Folded = strings.Contains(pattern, "*"); p.Folded {
			p.First, p.Last = []byte("<first>"), []byte(strings.Repeat("z", 40))
		}
		return p
	}
	var all []*stats.Prefix
	for i, k := range names {
		name := string(k.Key)
		all = append(all, prefix(name+":", 300-int64(i), prefix(name+":#", 200),
			prefix(name+":*:", 50, prefix(name+":*:<i>", 40))))
	}
	root := prefix("", 2000, all...)
	root.Unlisted = 7
	return root
}

func i64(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func htmlOf(t *testing.T, s *stats.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, "v1.2.3", s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestStatsSay: every form names the source, the filters, the time and the version, and of what the bytes on disk are.
func TestStatsSay(t *testing.T) {
	for name, print := range map[string]func(io.Writer, string, *stats.Result) error{"text": Stats, "json": StatsJSON,
		"html": HTML} {
		var b strings.Builder
		if err := print(&b, "v1.2.3", pageStats()); err != nil {
			t.Fatal(err)
		}
		text := html.UnescapeString(b.String())
		for _, want := range []string{"/data/<pika>", "b:*", "sample", "100", "keep", "v1.2.3", onDisk} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
		if !strings.Contains(text, "2023-11-14T22:13:20Z") && !strings.Contains(text, "1700000000000") {
			t.Errorf("%s lacks the time:\n%s", name, text)
		}
	}
}

// TestBlobFiles checks that blob files have their own lines, with their garbage.
func TestBlobFiles(t *testing.T) {
	var text, doc bytes.Buffer
	if err := errors.Join(Stats(&text, "v1.2.3", pageStats()), StatsJSON(&doc, "v1.2.3", pageStats())); err != nil {
		t.Fatal(err)
	}
	if s := text.String(); !regexp.MustCompile(`hash/default +blobs +3 +4\.0 KiB +7 +lz4`).MatchString(s) ||
		!strings.Contains(s, "2.0 KiB of the 4.0 KiB in blob files belong to values that no row refers to\n") {
		t.Error(s)
	}
	var got struct {
		Blobs []struct {
			Files   int
			Garbage int64 `json:"garbage_bytes"`
		}
	}
	if err := json.Unmarshal(doc.Bytes(), &got); err != nil || len(got.Blobs) != 1 || got.Blobs[0].Files != 3 ||
		got.Blobs[0].Garbage != 2048 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestHTMLIsSelfContained checks that the page makes no network requests, that keys cannot break its markup, and that
// it is complete without scripts.
func TestHTMLIsSelfContained(t *testing.T) {
	text := htmlOf(t, pageStats())
	markup, script, _ := strings.Cut(text, "<script>")
	if n := strings.Count(script, "</script>"); n != 1 || strings.Contains(markup, "<script") {
		t.Errorf("%d script elements end, want 1", n)
	}
	if m := regexp.MustCompile(`https?://|src=|href=|@import|url\(|fetch\(|XMLHttpRequest`).FindString(text); m != "" {
		t.Errorf("the page refers to %s", m)
	}
	for _, want := range []string{"<title>/data/&lt;pika&gt; – kvferry inspect v1.2.3</title>", "as of 2023-11-14T22:13:20Z, by kvferry v1.2.3</p>",
		"&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;", `\xff\x00binary`, "用户:1", `tab\x09here`, "<b>2,100</b> <span>records</span>",
		`aria-label="Bytes by type: 0 string 4.9 KiB, `, `aria-label="0 hash: 5 records from 1 B to `} {
		if !strings.Contains(markup, want) {
			t.Errorf("without its script the page does not have %s", want)
		}
	}
	charts, named := strings.Count(markup, `role="img"`), strings.Count(markup, `role="img" aria-label="`)
	if heads := strings.Count(markup, "<th "); charts != 17 || named != charts ||
		heads != len(regexp.MustCompile(`<th scope="(col|row)"`).FindAllString(markup, -1)) || heads < 150 {
		t.Errorf("%d charts, %d named; %d heads of columns", charts, named, heads)
	}
	if strings.Count(markup, "bar axis") != 5 || strings.Count(markup, `class="x"`) != 12 {
		t.Error("charts without an axis")
	}
	if n := nested(t, markup); n != 3 {
		t.Errorf("tables of prefixes are nested %d deep, want 3 without the script", n)
	}
	for _, want := range []string{`<details open><summary>the largest 5 of 12 below all keys</summary>`, "2 records without expiry of 90 like &lt;b&gt;:#",
		"kvferry keys &#39;/data/&lt;pika&gt;&#39; --match &#39;&lt;b&gt;:*&#39;", "superseded: 10", "within a day 50.0&nbsp;%",
		"<small>&lt;first&gt; to " + strings.Repeat("z", 32) + "…</small>",
		`<section>` + "\n" + `<h2>Largest of 0 hash</h2>`} {
		if !strings.Contains(markup, want) {
			t.Errorf("without its script the page does not have %s", want)
		}
	}
	if heads := regexp.MustCompile(`<th scope="col"[^>]*>[^<]*key</th>`).FindAllStringIndex(markup, -1); len(heads) != 15 {
		t.Errorf("%d columns of keys", len(heads))
	}
	for _, title := range []string{"Largest by bytes", "Largest by elements", "Largest of 0 hash"} {
		if _, table, _ := strings.Cut(markup, `aria-label="`+title+`">`); !strings.HasPrefix(table, "\n<table>\n<thead><tr><th scope=\"col\" class=\"text\">key<") {
			t.Errorf("%s does not start with the key", title)
		}
	}
	htmlOf(t, &stats.Result{})
	redis := pageStats()
	redis.Redis, redis.Types[1].Redis, redis.TopRedis = 1<<20, 1<<19, redis.TopBytes[:1]
	redis.TopRedis[0].Redis = 1 << 18
	text = htmlOf(t, redis)
	if n := strings.Count(text, `<th scope="col">in Redis</th>`); n != 17 ||
		!strings.Contains(text, `aria-label="Memory in Redis: `) ||
		!strings.Contains(text, `<td data-n="262144">256.0 KiB</td>`) || strings.Contains(markup, "in Redis") {
		t.Errorf("%d columns of memory in Redis", n)
	}
}

// nested checks that all elements end where they should, and returns how deep tables of prefixes are nested.
func nested(t *testing.T, markup string) (deepest int) {
	t.Helper()
	var open []string
	for _, tag := range regexp.MustCompile(`<(/?)([a-z0-9]+)[^>]*>`).FindAllStringSubmatch(markup, -1) {
		switch name := tag[2]; {
		case name == "meta":
		case tag[1] == "":
			open = append(open, name)
		case len(open) == 0 || open[len(open)-1] != name:
			t.Fatalf("%s ends within %q", name, open)
		default:
			open = open[:len(open)-1]
		}
		deepest = max(deepest, strings.Count(strings.Join(open, " "), "details"))
	}
	if fmt.Sprint(open) != "[html body]" {
		t.Errorf("%q is open at the end", open)
	}
	return deepest
}

// clicks runs in the page: it goes down the map of prefixes by its buttons, and up by the keyboard.
const clicks = `
<script>
(function () {
  const out = { errors: window.kvErrors, seen: [], at: [] };
  const see = () => out.seen.push([...map.querySelectorAll("nav button")].map(b => b.textContent).join(" > ") + ": " +
    [...map.querySelectorAll(".boxes button")].map(b => b.textContent).join("; "));
  const covered = () => [...map.querySelectorAll(".boxes button")].reduce((sum, b) => sum + parseFloat(b.style.width) * parseFloat(b.style.height), 0);
  see();
  map.querySelector(".boxes button").click();
  see();
  out.focus = document.activeElement.closest("#map") !== null;
  map.querySelectorAll(".boxes button:not([aria-disabled])")[0].click();
  see();
  out.area = covered();
  for (const key of ["Escape", "Backspace", "a"]) {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    out.at.push(document.activeElement.textContent);
  }
  see();
  document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(out) }));
})();
</script>`

// TestHTMLMap checks that one can go down the map of prefixes and up again.
func TestHTMLMap(t *testing.T) {
	s := pageStats()
	s.Prefixes = pagePrefixes([]stats.BigKey{{Key: []byte("a"), Type: record.Hash}, {Key: []byte("b"), Type: record.Hash}})
	var saw struct {
		Errors, Seen, At []string
		Focus            bool
		Area             float64
	}
	if err := json.Unmarshal(browse(t, strings.Replace(htmlOf(t, s), "</body>", clicks+"</body>", 1), 1280), &saw); err != nil {
		t.Fatal(err)
	}
	want := []string{"all keys 100.0 %: a: 15.0 %; b: 14.9 %; other keys 70.0 %", "all keys 100.0 % > a: 15.0 %: a:# 10.0 %; a:*: 2.5 %; other keys 2.5 %",
		"all keys 100.0 % > a: 15.0 % > a:*: 2.5 %: a:*:<i> 2.0 %; other keys 0.5 %", "all keys 100.0 %: a: 15.0 %; b: 14.9 %; other keys 70.0 %"}
	if at := strings.Join(saw.At, ", "); at != "a:*: 2.5 %, a: 15.0 %, a: 15.0 %" {
		t.Errorf("the focus is on %s", at)
	}
	if len(saw.Errors) > 0 || !saw.Focus || saw.Area < 9999 || saw.Area > 10001 ||
		fmt.Sprintf("%q", saw.Seen) != fmt.Sprintf("%q", want) {
		t.Errorf("%+v, want %q", saw, want)
	}
}

// TestPageSorts checks that columns of numbers are sorted by number, whatever their texts.
func TestPageSorts(t *testing.T) {
	var page bytes.Buffer
	rows := [][]Cell{{words("a"), words("done"), Size(3 << 20), words("")}, {words("b"), words("open"), {Number: -1}, words("")},
		{words("c"), words("done"), Size(20 << 10), words("")}}
	if err := Page(&page, "fleet", "3 datasets", []string{"dataset", "state", "source", "lost"}, rows, nil); err != nil {
		t.Fatal(err)
	}
	const sorting = `<script>
document.querySelectorAll("th button")[2].click();
const names = [...document.querySelectorAll("tbody tr")].map(row => row.cells[0].textContent);
document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(names) }));
</script>`
	var names []string
	if err := json.Unmarshal(browse(t, strings.Replace(page.String(), "</body>", sorting+"</body>", 1), 1280),
		&names); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "a c b" {
		t.Errorf("sorted by size: %s", got)
	}
}

// probe runs in the page after the page's script. It counts the charts, sorts a table by each column in both
// directions, and writes the result into the document.
const probe = `
<script>
(function () {
  const out = { errors: window.kvErrors, charts: 0, bars: 0, tables: document.querySelectorAll("table:not(.tree)").length, sorted: 0, wrong: [] };
  for (const chart of document.querySelectorAll(".chart")) {
    const box = chart.getBoundingClientRect();
    if (box.width > 100 && box.height > 20) out.charts++;
    for (const bar of chart.querySelectorAll("i")) if (bar.getBoundingClientRect().width > 0) out.bars++;
  }
  for (const table of document.querySelectorAll("table:not(.tree)")) {
    const column = i => [...table.tBodies[0].rows].map(r => r.cells[i].textContent);
    const value = t => /^[\d,]+$/.test(t) ? Number(t.replace(/,/g, "")) : null;
    [...table.tHead.rows[0].cells].forEach((th, i) => {
      for (let n = 0; n < 2; n++) {
        th.querySelector("button").click();
        const list = column(i).map(value);
        if (list.includes(null)) continue;
        const down = th.getAttribute("aria-sort") === "descending";
        if (list.some((v, j) => j > 0 && (down ? v > list[j - 1] : v < list[j - 1]))) out.wrong.push(th.textContent + ": " + list.join(" "));
        out.sorted++;
      }
    });
  }
  out.keys = [...document.querySelectorAll("td.key")].map(td => td.textContent);
  out.wide = document.documentElement.scrollWidth > window.innerWidth;
  document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(out) }));
})();
</script>`

// browse opens a page from a file in a real browser with this window width, and returns the result of its probe.
func browse(t *testing.T, text string, width int, flags ...string) []byte {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("no Chromium is installed (apt install chromium): the page was not opened in a browser")
	}
	dir := t.TempDir()
	const listen = `<script>window.kvErrors = []; window.onerror = m => { kvErrors.push(String(m)); };
		document.addEventListener("securitypolicyviolation", e => kvErrors.push(e.blockedURI)); const error = console.error; console.error = (...a) => { kvErrors.push(a.join(" ")); };</script>`
	text = strings.Replace(text, "<title>", listen+"<title>", 1)
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		fmt.Sprintf("--window-size=%d,900", width),
		"--user-data-dir="+filepath.Join(dir, "profile"), "--virtual-time-budget=5000", "--dump-dom", "file://"+path)
	cmd := exec.Command(browser, flags...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	m := regexp.MustCompile(`(?s)<pre id="probe">(.*?)</pre>`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("the page did not come to its end:\n%.2000s", out)
	}
	return []byte(strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(string(m[1])))
}

// TestHTMLInBrowser checks that charts are drawn, tables sort, and no error occurs.
func TestHTMLInBrowser(t *testing.T) {
	var saw struct {
		Errors, Wrong, Keys          []string
		Charts, Bars, Tables, Sorted int
		Wide                         bool
	}
	err := json.Unmarshal(browse(t, strings.Replace(htmlOf(t, pageStats()), "</body>", probe+"</body>", 1), 1280), &saw)
	if err != nil {
		t.Fatal(err)
	}
	if len(saw.Errors) > 0 || len(saw.Wrong) > 0 || saw.Wide {
		t.Errorf("errors %q, tables out of order %q, wider than the window: %v", saw.Errors, saw.Wrong, saw.Wide)
	}
	if saw.Charts != 17 || saw.Tables != 7 || saw.Bars < 25 || saw.Sorted < 40 {
		t.Errorf("%d charts with %d bars, %d tables, %d times sorted", saw.Charts, saw.Bars, saw.Tables, saw.Sorted)
	}
	keys := fmt.Sprintf("%q", saw.Keys)
	if !strings.Contains(keys, "alert(1)") || !strings.Contains(keys, `\\xff\\x00binary`) || !strings.Contains(keys, "用户:1") {
		t.Errorf("keys are shown as %s", keys)
	}
}

// widths runs in the page and finds cut-off content: a table wider than its box must scroll to its end.
const widths = `
<script>
(function () {
  const out = { errors: window.kvErrors, inner: window.innerWidth, wide: document.documentElement.scrollWidth > window.innerWidth, cut: [], scrolls: [] };
  for (const box of document.querySelectorAll("section")) {
    const edge = box.getBoundingClientRect();
    for (const e of box.querySelectorAll(":scope > *")) if (e.getBoundingClientRect().right > edge.right + 1) out.cut.push(box.querySelector("h2").textContent);
  }
  for (const table of document.querySelectorAll("table:not(.tree)")) {
    const box = table.parentElement, name = box.getAttribute("aria-label");
    const seen = e => e.getBoundingClientRect().right <= box.getBoundingClientRect().right + 1;
    const last = table.tHead.rows[0].lastElementChild;
    if (seen(last)) continue;
    out.scrolls.push(name);
    box.scrollLeft = box.scrollWidth;
    if (!seen(last) || getComputedStyle(box).overflowX !== "auto" || box.tabIndex !== 0) out.cut.push(name);
  }
  document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(out) }));
})();
</script>`

// TestHTMLWidths checks that a narrow window cuts off no content: wide content scrolls. In a wide window everything
// fits.
func TestHTMLWidths(t *testing.T) {
	long := pageStats()
	for i := range long.Types {
		long.Types[i].Records, long.Types[i].Elements, long.Types[i].Bytes = 1234567890, 12345678901, 1<<50
	}
	for _, c := range []struct {
		width int
		stats *stats.Result
		fits  bool
	}{{700, pageStats(), false}, {700, long, false}, {520, long, false}, {1200, pageStats(), true}} {
		var saw struct {
			Errors, Cut, Scrolls []string
			Inner                int
			Wide                 bool
		}
		err := json.Unmarshal(browse(t, strings.Replace(htmlOf(t, c.stats), "</body>", widths+"</body>", 1), c.width), &saw)
		if err != nil {
			t.Fatal(err)
		}
		if len(saw.Errors) > 0 || len(saw.Cut) > 0 || saw.Wide || saw.Inner > c.width {
			t.Errorf("%d px (%d inside): errors %q, cut %q, wider than the window: %v", c.width, saw.Inner, saw.Errors, saw.Cut,
				saw.Wide)
		}
		if c.fits && len(saw.Scrolls) > 0 {
			t.Errorf("%d px: %q do not fit", c.width, saw.Scrolls)
		}
	}
}

// legible runs in the page, in a frame of the requested window width, because a window is never narrower than 500 px.
const legible = `
<script>
(function () {
  const lum = c => {
    const [r, g, b] = c.match(/[\d.]+/g).map(Number).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const under = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (c !== "rgba(0, 0, 0, 0)" && c !== "transparent") return c;
    }
  };
  const out = { errors: window.kvErrors, inner: window.innerWidth, wide: document.documentElement.scrollWidth > window.innerWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches, small: [], pale: [], outside: [] };
  for (const e of document.querySelectorAll("main *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e);
    if (parseFloat(style.fontSize) < 11) out.small.push(e.textContent);
    const [a, b] = [lum(style.color), lum(under(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) out.pale.push(e.textContent + " " + ((a + 0.05) / (b + 0.05)).toFixed(2));
    if (!e.closest(".scroll") && e.getBoundingClientRect().right > window.innerWidth) out.outside.push(e.textContent);
  }
  const all = parent.kvSaw = (parent.kvSaw || []).concat(out);
  if (all.length === 2) parent.document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(all) }));
})();
</script>`

// TestHTMLIsLegible checks that text is at least 11 px high and has enough contrast, light and dark, on a phone and
// on a screen.
func TestHTMLIsLegible(t *testing.T) {
	inner := strings.Replace(htmlOf(t, pageStats()), "</body>", legible+"</body>", 1)
	for _, scheme := range []int{0, 1} { // dark, light
		frames := `<!DOCTYPE html><title>frames</title><body style="margin:0">`
		for _, width := range []int{390, 1280} {
			frames += fmt.Sprintf(`<iframe style="border:0;width:%dpx;height:800px" srcdoc="%s"></iframe>`, width,
				html.EscapeString(inner))
		}
		var pages []struct {
			Errors, Small, Pale, Outside []string
			Inner                        int
			Wide, Dark                   bool
		}
		err := json.Unmarshal(browse(t, frames, 1700, fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme)), &pages)
		if err != nil {
			t.Fatal(err)
		}
		if pages[0].Inner+pages[1].Inner != 390+1280 {
			t.Errorf("%d and %d px", pages[0].Inner, pages[1].Inner)
		}
		for _, saw := range pages {
			if saw.Dark != (scheme == 0) || saw.Wide || len(saw.Errors)+len(saw.Small)+len(saw.Pale)+len(saw.Outside) > 0 {
				t.Errorf("%d px, dark %v: errors %q, small %q, pale %q, outside %q, wider than the window: %v", saw.Inner,
					saw.Dark, saw.Errors, saw.Small, saw.Pale, saw.Outside, saw.Wide)
			}
		}
	}
}
