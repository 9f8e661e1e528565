package ardb

import (
	"errors"
	"fmt"

	"kvferry/ardb/codec"
	"kvferry/record"
)

// beginZSet counts the sort rows, which come first, and looks ahead to the first score row.
func (p *pass) beginZSet() (bool, error) {
	p.zset = codec.Twins{}
	for {
		p.plainSorts()
		ok, err := p.zsetRow()
		if err != nil || !ok {
			return false, err
		}
		if codec.Kind(p.key[len(p.prefix)]) == codec.KindScore {
			return true, nil
		}
		score, d, err := p.sortRow()
		if err != nil {
			p.badElement(&keyError{fmt.Errorf("sort row: %w", err)})
			continue
		}
		if err := codec.DecodeNone(codec.KindSort, p.val); err != nil {
			p.badElement(err)
			continue
		}
		p.arena = p.arena[:0]
		_, member := p.served(&d, false)
		p.zset.Sort(member, score)
		p.index++
		p.have = false
	}
}

// zsetRow looks ahead to the next sort or score row.
func (p *pass) zsetRow() (bool, error) {
	for {
		if err := p.advance(); err != nil || p.eof || !p.inRecord() {
			if p.zset.Sorts > 0 && err == nil {
				p.twins()
			}
			return false, err
		}
		if k := codec.Kind(p.key[len(p.prefix)]); k == codec.KindSort || k == codec.KindScore {
			return true, nil
		}
		p.orphaned(p.user)
	}
}

// sortRow decodes the score and the member of the sort row ahead.
func (p *pass) sortRow() (float64, codec.Data, error) {
	if score, member, ok := codec.SplitSort(p.key[len(p.prefix)+1:]); ok {
		return score, member, nil
	}
	if _, err := codec.DecodeKey(p.key, p.sp.Named); err != nil {
		return 0, codec.Data{}, err
	}
	return 0, codec.Data{}, errors.New("the score is not a number")
}

func (p *pass) twins() {
	p.report(FindZSetTwin, record.Error, record.ZSet, p.head.Key,
		fmt.Sprintf("%d sort rows and %d score rows do not hold the same members and scores", p.zset.Sorts, p.zset.Scores))
}
