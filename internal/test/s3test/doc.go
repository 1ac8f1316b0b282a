// Package s3test holds what publishes in S3 against gofakes3, by the real client over HTTP. It is a module of
// its own, for what users must not download.
package s3test
