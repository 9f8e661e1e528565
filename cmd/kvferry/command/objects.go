package command

import (
	"context"

	"github.com/spf13/pflag"

	"kvferry/internal/sys/object"
)

// objectFlags are the flags for reading from an object store.
type objectFlags struct{ options object.Options }

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
		o := f.options
		o.Memory = memory / cachePart
		path, unmount, err := object.Mount(ctx, address, o)
		if err == nil {
			context.AfterFunc(ctx, unmount)
		}
		return path, err
	}
}
