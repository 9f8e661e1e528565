package object

import (
	"context"
	"fmt"
	"time"

	"kvferry/internal/sys/pace"
)

// withdrawTime bounds the removal of an upload.
const withdrawTime = 2 * time.Minute

// Withdraw removes an upload that is not published, as far as it is of this run. It takes withdrawTime at most, also if
// ctx is cancelled.
func (t *Target) Withdraw(ctx context.Context, u *Upload) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	r := t.requests(ctx)
	err := t.withdraw(r, u)
	if err != nil {
		err = fmt.Errorf("%w; parts of the upload are left: remove them with %s, and unfinished parts with aws s3api abort-multipart-upload",
			err, t.Removal())
	}
	return err
}

// settle is the time that a server needs for the last requests of an upload, whose answers were not awaited.
const settle = 300 * time.Millisecond

func (t *Target) withdraw(r *requests, u *Upload) error {
	if err := pace.Rest(r.ctx, settle); err != nil {
		return err
	}
	own, err := t.run(r, t.key)
	if t.dir && err == nil {
		own, err = t.marked(r)
	}
	if err != nil || t.dir && own != u.Run {
		return err
	}
	var keys []string
	begun := map[string]string{} // keys by id
	for key, id := range u.IDs {
		begun[id] = key
	}
	if t.dir {
		err = t.all(r, &keys, begun)
	} else if own == u.Run {
		keys = append(keys, t.key)
	}
	if err == nil {
		own, err = t.run(r, t.report())
	}
	if err != nil {
		return err
	}
	if own == u.Run {
		keys = append(keys, t.report())
	}
	for id, key := range begun {
		if err := r.retry("abort", t.s3.address(key), func() error { return t.s3.abort(r.ctx, key, id) }); err != nil {
			return err
		}
	}
	remove := func(key string) error {
		return r.retry("remove", t.s3.address(key), func() error { return t.s3.remove(r.ctx, key) })
	}
	err = pace.Each(len(keys), u.requests(), func(i int) error { return remove(keys[i]) })
	if err == nil && t.dir {
		err = remove(t.marker())
	}
	return err
}

// all lists what a directory has but the marker: objects, and those in parts, of which a process that died may not have
// noted each.
func (t *Target) all(r *requests, keys *[]string, begun map[string]string) error {
	err := t.each(r, func(o *object) {
		if o.key != t.marker() {
			*keys = append(*keys, o.key)
		}
	})
	if err != nil {
		return err
	}
	return r.retry("list", t.Address(), func() error {
		more, err := t.s3.begun(r.ctx, t.key+"/")
		for _, b := range more {
			begun[b[1]] = b[0]
		}
		return err
	})
}
