package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kvferry/inspect"
	"kvferry/record"
)

// pageStats are statistics with what could break a page.
func pageStats() *inspect.Stats {
	sizes := func(values ...int64) inspect.Distribution {
		var h inspect.Histogram
		for _, v := range values {
			h.Add(v)
		}
		return h.Distribution()
	}
	s := &inspect.Stats{Format: "nemo", Databases: []string{"0", "1"}, NowMS: 1700000000000}
	for i, t := range []record.Type{record.String, record.Hash, record.List, record.Set, record.ZSet, record.Stream} {
		n := int64(i + 1)
		s.Types = append(s.Types, inspect.TypeStats{DB: "0", Type: t, Records: 100 * n, Elements: 1000 / n, Bytes: 5000 * n * n, Disk: 4000 * n,
			Expiring: n, Expired: i64(t == record.Hash), Shared: t == record.Stream,
			Sizes: sizes(1, 10, 100, 1000*n, 100000), Lengths: sizes(0, 1, n, 1<<20), KeySizes: sizes(3, 9)})
	}
	s.Expiry = []inspect.ExpiryBucket{{Name: "expired", Records: 1}, {Name: "within a day", Records: 20}, {Name: "never", Records: 2000}}
	for i, key := range []string{"</script><script>alert(1)</script>", "\xff\x00binary", "用户:1", "tab\there", `quote " and \`} {
		s.TopBytes = append(s.TopBytes, inspect.BigKey{DB: "0", Type: record.Hash, Key: []byte(key), Bytes: int64(900 - i), Elements: int64(i), ExpireMS: int64(i) * 1e12})
	}
	s.TopElements = s.TopBytes[:2]
	s.Prefixes = []inspect.PrefixStats{{Prefix: []byte("user:"), Records: 5, Elements: 6, Bytes: 7}, {Records: 1, Elements: 1, Bytes: 1}}
	s.MorePrefixes = inspect.PrefixStats{Records: 3, Elements: 3, Bytes: 3}
	s.PrefixMisses = 12
	g := inspect.Garbage{Keyspace: "hash", Bytes: 1000, Freed: 300}
	g.Rows[record.Copied], g.Rows[record.Stale], g.Rows[record.Orphan], g.Entries, g.Visible, g.Superseded, g.Tombstones = 70, 10, 5, 100, 85, 10, 5
	s.Garbage = []inspect.Garbage{g, {Keyspace: "kv"}}
	s.Files = inspect.FileStats{Levels: []inspect.LevelStats{{Keyspace: "hash/default", Level: 0, Files: 2, Bytes: 100, Entries: 10, Codecs: []string{"snappy"}},
		{Keyspace: "hash/default", Level: 6, Files: 20, Bytes: 10000, Entries: 1000, Deletes: 3, Codecs: []string{"none", "zlib"}}},
		Blobs: []inspect.LevelStats{{Keyspace: "hash/default", Level: -1, Files: 3, Bytes: 4096, Entries: 7, Garbage: 2048, Codecs: []string{"lz4"}}},
		Logs:  inspect.LevelStats{Files: 1, Bytes: 50}}
	return s
}

func i64(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func htmlOf(t *testing.T, s *inspect.Stats) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, "/data/<pika>", s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Blob files have lines of their own, and what is garbage in them is said.
func TestBlobFiles(t *testing.T) {
	var text, doc bytes.Buffer
	if err := errors.Join(Stats(&text, pageStats()), StatsJSON(&doc, pageStats())); err != nil {
		t.Fatal(err)
	}
	if s := text.String(); !regexp.MustCompile(`hash/default +blobs +3 +4\.0 KiB +7 +lz4`).MatchString(s) ||
		!strings.Contains(s, "2.0 KiB of the 4.0 KiB in blob files are of values that no row has any more\n") {
		t.Error(s)
	}
	var got struct {
		Blobs []struct {
			Files   int
			Garbage int64 `json:"garbage_bytes"`
		}
	}
	if err := json.Unmarshal(doc.Bytes(), &got); err != nil || len(got.Blobs) != 1 || got.Blobs[0].Files != 3 || got.Blobs[0].Garbage != 2048 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The page asks the network for nothing and no key ends its script.
func TestHTMLIsSelfContained(t *testing.T) {
	text := htmlOf(t, pageStats())
	if n := strings.Count(text, "</script>"); n != 2 {
		t.Errorf("%d script elements end, want 2", n)
	}
	markup := strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
	if m := regexp.MustCompile(`https?://|src=|href=|@import|url\(|fetch\(|XMLHttpRequest`).FindString(markup); m != "" {
		t.Errorf("the page refers to %s", m)
	}
	for _, s := range []*inspect.Stats{{}, pageStats()} {
		_, rest, _ := strings.Cut(htmlOf(t, s), `type="application/json">`)
		data, _, _ := strings.Cut(rest, "</script>")
		if !json.Valid([]byte(data)) {
			t.Errorf("no JSON: %.200s", data)
		}
	}
}

// probe runs in the page after its own script: it counts what was drawn, sorts a table by each column, both
// ways, and writes what it saw into the document.
const probe = `
<script>
(function () {
  const out = { errors: window.kvErrors, charts: 0, bars: 0, tables: document.querySelectorAll("table").length, sorted: 0, wrong: [] };
  for (const svg of document.querySelectorAll("svg.chart")) {
    const box = svg.getBoundingClientRect();
    if (box.width > 100 && box.height > 20) out.charts++;
    for (const bar of svg.querySelectorAll("rect")) if (bar.getBoundingClientRect().width > 0) out.bars++;
  }
  for (const table of document.querySelectorAll("table")) {
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
  const pick = document.querySelector("select");
  pick.value = "3";
  pick.dispatchEvent(new Event("change"));
  out.picked = document.querySelectorAll("svg.chart").length;
  out.keys = [...document.querySelectorAll("td.key")].map(td => td.textContent);
  out.wide = document.documentElement.scrollWidth > window.innerWidth;
  document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(out) }));
})();
</script>`

// browse opens a page in a real browser from a file, in a window so wide, and returns what its probe saw.
func browse(t *testing.T, text string, width int) []byte {
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
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", fmt.Sprintf("--window-size=%d,900", width),
		"--user-data-dir="+filepath.Join(dir, "profile"), "--virtual-time-budget=5000", "--dump-dom", "file://"+path)
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

// Charts are drawn, tables sort, nothing goes wrong.
func TestHTMLInBrowser(t *testing.T) {
	var saw struct {
		Errors, Wrong, Keys                  []string
		Charts, Bars, Tables, Sorted, Picked int
		Wide                                 bool
	}
	if err := json.Unmarshal(browse(t, strings.Replace(htmlOf(t, pageStats()), "</body>", probe+"</body>", 1), 1280), &saw); err != nil {
		t.Fatal(err)
	}
	if len(saw.Errors) > 0 || len(saw.Wrong) > 0 || saw.Wide {
		t.Errorf("errors %q, tables out of order %q, wider than the window: %v", saw.Errors, saw.Wrong, saw.Wide)
	}
	if saw.Charts != 6 || saw.Picked != 6 || saw.Tables != 6 || saw.Bars < 25 || saw.Sorted < 40 {
		t.Errorf("%d charts with %d bars, %d tables, %d times sorted", saw.Charts, saw.Bars, saw.Tables, saw.Sorted)
	}
	if keys := fmt.Sprintf("%q", saw.Keys); !strings.Contains(keys, "alert(1)") || !strings.Contains(keys, `\\xff\\x00binary`) || !strings.Contains(keys, "用户:1") {
		t.Errorf("keys are shown as %s", keys)
	}
}

// widths runs in the page and looks for what is cut: a table that is wider than its box must scroll to its end.
const widths = `
<script>
(function () {
  const out = { errors: window.kvErrors, inner: window.innerWidth, wide: document.documentElement.scrollWidth > window.innerWidth, cut: [], scrolls: [] };
  for (const box of document.querySelectorAll("section")) {
    const edge = box.getBoundingClientRect();
    for (const e of box.querySelectorAll(":scope > *")) if (e.getBoundingClientRect().right > edge.right + 1) out.cut.push(box.querySelector("h2").textContent);
  }
  for (const table of document.querySelectorAll("table")) {
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

// Nothing is cut in a narrow window: what does not fit can be scrolled to. In a wide one everything fits.
func TestHTMLWidths(t *testing.T) {
	long := pageStats()
	for i := range long.Types {
		long.Types[i].Records, long.Types[i].Elements, long.Types[i].Bytes = 1234567890, 12345678901, 1<<50
	}
	for _, c := range []struct {
		width int
		stats *inspect.Stats
		fits  bool
	}{{700, pageStats(), false}, {700, long, false}, {520, long, false}, {1200, pageStats(), true}} {
		var saw struct {
			Errors, Cut, Scrolls []string
			Inner                int
			Wide                 bool
		}
		if err := json.Unmarshal(browse(t, strings.Replace(htmlOf(t, c.stats), "</body>", widths+"</body>", 1), c.width), &saw); err != nil {
			t.Fatal(err)
		}
		if len(saw.Errors) > 0 || len(saw.Cut) > 0 || saw.Wide || saw.Inner > c.width {
			t.Errorf("%d px (%d inside): errors %q, cut %q, wider than the window: %v", c.width, saw.Inner, saw.Errors, saw.Cut, saw.Wide)
		}
		if c.fits && len(saw.Scrolls) > 0 {
			t.Errorf("%d px: %q do not fit", c.width, saw.Scrolls)
		}
	}
}
