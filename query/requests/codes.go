package requests

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"tidemark/model"
)

// ErrorCode is an error number of the server and how often it came. Code is "other" for those that found no room.
type ErrorCode struct {
	Code  string
	Count uint64
}

// codePrefix begins the measure of an error number of a shape: "errors.11000".
const codePrefix = "errors."

// codes sums up the error numbers of a shape over a range; what came most is first.
func (r *Reader) codes(ctx context.Context, i *Instance, fingerprint string, over model.TimeRange) ([]ErrorCode, error) {
	var things []*thing
	for _, id := range r.catalog.Match(equal(nameLabel, shapeMetric), equal("host", i.Host), equal("instance", i.Address), equal("fingerprint", fingerprint)) {
		e, ok := r.catalog.Item(id)
		if !ok {
			continue
		}
		if _, name, ok := splitKey(e.Key); ok && strings.HasPrefix(name, codePrefix) {
			things = append(things, &thing{names: Names{ID: name[len(codePrefix):]}, items: measureItems{errorMeasure: id}})
		}
	}
	if len(things) == 0 {
		return nil, nil
	}
	if err := r.sum(ctx, things, []measure{errorMeasure}, over); err != nil {
		return nil, err
	}
	var codes []ErrorCode
	for _, t := range things {
		if t.sums.Errors > 0 {
			codes = append(codes, ErrorCode{t.names.ID, t.sums.Errors})
		}
	}
	slices.SortFunc(codes, func(a, b ErrorCode) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code))
	})
	return codes, nil
}
