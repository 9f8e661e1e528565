module github.com/getsentry/sentry-go

go 1.23.0
