package object

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"gopkg.in/ini.v1"
)

// login finds credentials where the tools of AWS find them: in the environment, in the files of a profile, with a web
// identity, and at the metadata service of a container or machine. It stays with the first one that has some.
type login struct {
	providers []namedProvider
	found     credentials.Provider
}

type namedProvider struct {
	name string
	credentials.Provider
}

// metadataTimeout bounds the search for a metadata service, which only machines of a cloud have.
const metadataTimeout = 3 * time.Second

// credentialsOf returns the credentials of requests.
func credentialsOf(o *Options, region string) *credentials.Credentials {
	if o.Anonymous {
		return credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	}
	l := &login{providers: []namedProvider{
		{"the environment", &credentials.EnvAWS{}},
		{"the profile", &credentials.FileAWSCredentials{}},
	}}
	if web := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != ""; web || os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" {
		name, timeout := "the metadata service", metadataTimeout
		if web {
			name, timeout = "the web identity", 10*metadataTimeout
		}
		l.providers = append(
			l.providers, namedProvider{name, &credentials.IAM{Region: region, Client: &http.Client{Timeout: timeout}}})
	}
	return credentials.New(l)
}

// loginError lists why each provider has no credentials.
type loginError struct{ why []string }

func (e *loginError) Error() string {
	return "no credentials found (" + strings.Join(e.why, "; ") +
		"): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or read a public bucket with --s3-anonymous"
}

// RetrieveWithCredContext returns credentials.
func (l *login) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	e := &loginError{}
	for _, p := range l.providers {
		v, err := p.RetrieveWithCredContext(cc)
		if err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "" {
			l.found = p.Provider
			return v, nil
		}
		why := "none"
		if err != nil {
			why = err.Error()
		}
		e.why = append(e.why, p.name+": "+why)
	}
	return credentials.Value{}, e
}

// Retrieve returns credentials.
func (l *login) Retrieve() (credentials.Value, error) { return l.RetrieveWithCredContext(nil) }

// IsExpired reports whether new credentials are needed.
func (l *login) IsExpired() bool { return l.found == nil || l.found.IsExpired() }

// settings are the settings of a profile for requests.
type settings struct{ region, endpoint string }

// profile reads the settings of the chosen profile. A missing or damaged file has no settings.
func profile() (s settings) {
	path := os.Getenv("AWS_CONFIG_FILE")
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path = filepath.Join(home, ".aws", "config")
	}
	file, err := ini.Load(path)
	if err != nil {
		return s
	}
	name := cmp.Or(os.Getenv("AWS_PROFILE"), "default")
	section := file.Section(fmt.Sprintf("profile %s", name))
	if name == "default" && len(section.Keys()) == 0 {
		section = file.Section(name)
	}
	return settings{section.Key("region").String(), section.Key("endpoint_url").String()}
}
