package command

import (
	"context"
	"sync"

	"github.com/spf13/pflag"

	"kvferry/internal/sys/object"
)

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

// cachePart is the part of --memory for reading ahead in an object store: one of so many.
const cachePart = 8

// mounter returns the function that makes an address readable as long as the command runs.
func (f *objectFlags) mounter(ctx context.Context, memory int64) func(string) (string, error) {
	return func(address string) (string, error) {
		return runOf(ctx).mount(ctx, address, f.options, memory/cachePart)
	}
}

// mounts are the addresses that a command reads. Each is mounted once, however often the command looks for the dataset.
type mounts struct {
	mu    sync.Mutex
	paths map[mountOf]string
	undo  []func()
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
