//go:build !linux && !darwin && !windows

package disk

import "errors"

func freeSpace(string) (Space, error) { return Space{}, errors.ErrUnsupported }
