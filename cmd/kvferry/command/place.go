package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/internal/visible"
	"kvferry/redis"
	"kvferry/store"
)

// standardInput is the location of what comes in there.
const standardInput = "-"

// noStores stands for the driver of formats that have none.
var noStores = &Driver{}

// noStore is the opener of formats that have no stores.
func noStore(context.Context, string, *store.Options) (store.Store, error) {
	return nil, store.ErrNotStore
}

// noBuilder is for targets that have no stores.
func noBuilder(string, store.BuildOptions) (store.Builder, error) { return nil, errors.ErrUnsupported }

// placeless returns the output of a target that has no stores.
func placeless(f format.Format, loc Location) (convert.Output, error) {
	if loc.Store != "" {
		return convert.Output{}, usagef("%s+%s: %s has no stores", loc.Format, loc.Store, f.Name())
	}
	return convert.Output{Format: f, Path: loc.Path, Create: noBuilder, Open: noStore}, nil
}

// checkPlace says in plain words why a source cannot be one: f is its format, nil when it is to be detected.
func checkPlace(f format.Format, path string) error {
	if f != nil && f.Limits().Place == format.InDirectory {
		return checkDirectory(path)
	}
	if path == standardInput {
		return nil
	}
	st, err := disk.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f == nil:
		return fmt.Errorf("%s: no such directory", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file or directory", path)
	case err != nil:
		return err
	case !st.IsDir() && !st.Mode().IsRegular():
		return fmt.Errorf("%s: not a directory", path)
	}
	return nil
}

// evidenceOf gathers the evidence of a directory, or of a file. Standard input is not looked at before it is read.
func (a *App) evidenceOf(path string) (*format.Evidence, error) {
	if path == standardInput {
		return &format.Evidence{Dir: path, Head: []byte{}}, nil
	}
	st, err := disk.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return a.gather(path)
	}
	head, err := redis.Head(path)
	return &format.Evidence{Dir: path, Head: head}, err
}

// hasRows refuses formats that have no rows on disk, for commands that show these.
func (d *Dataset) hasRows() error {
	if d.format.Limits().Place == format.InFiles {
		return usagef("%s: an append-only file has commands and no rows; kvferry dump --match shows the record of a key", visible.Text(d.Location.Path))
	}
	return nil
}
