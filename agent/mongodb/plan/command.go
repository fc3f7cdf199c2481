package plan

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Explain makes the command that asks how the server would answer, with placeholders in the place of values: of the type that the operator needs, else a
// text, or an ObjectId for _id. The server does not run it (verbosity queryPlanner). An error says why no placeholder will do.
func (q *Query) Explain(collection string) (bson.D, error) {
	filter, err := fill(q.filter, "", 0)
	if err != nil {
		return nil, err
	}
	find := bson.D{{Key: "find", Value: collection}, {Key: "filter", Value: filter}}
	if len(q.sort.fields) > 0 {
		order := bson.D{}
		for _, f := range q.sort.fields {
			n, ok := direction(f.value)
			if !ok || !named(f.name) {
				return nil, fmt.Errorf("it is sorted by %s, which is no field", f.name)
			}
			order = append(order, bson.E{Key: f.name, Value: n})
		}
		find = append(find, bson.E{Key: "sort", Value: order})
	}
	if q.skip {
		find = append(find, bson.E{Key: "skip", Value: int32(1)})
	}
	if q.limited {
		find = append(find, bson.E{Key: "limit", Value: int32(10)})
	}
	return bson.D{{Key: "explain", Value: find}, {Key: "verbosity", Value: "queryPlanner"}}, nil
}

func direction(v value) (int32, bool) {
	switch {
	case v.kind == word && v.text == "1":
		return 1, true
	case v.kind == word && v.text == "-1":
		return -1, true
	}
	return 0, false
}

// named reports whether a field of a shape is a name as the client wrote it: a "*" stands for names that are data.
func named(name string) bool {
	if name == "" || strings.HasPrefix(name, "$") {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "*" || part == "" {
			return false
		}
	}
	return true
}

// fill returns a value with placeholders; under is the name of the field or operator that it belongs to.
func fill(v value, under string, depth int) (any, error) {
	switch v.kind {
	case placeholder:
		return stand(under)
	case word:
		return nil, fmt.Errorf("it compares with %s, which only the server knows", v.text)
	case list:
		return fillList(v, under, depth)
	}
	d := bson.D{}
	for _, f := range v.fields {
		switch {
		case f.name == "$comment":
			continue
		case strings.HasPrefix(f.name, "$") && !operators[f.name]:
			return nil, fmt.Errorf("nothing can stand for the values of %s", f.name)
		case !strings.HasPrefix(f.name, "$") && !named(f.name):
			return nil, fmt.Errorf("the names of its fields are data: %s", f.name)
		}
		next := f.name
		if f.name == "$not" || f.name == "$eq" || f.name == "$ne" || f.name == "$elemMatch" {
			next = under
		}
		child, err := fill(f.value, next, depth+1)
		if err != nil {
			return nil, err
		}
		d = append(d, bson.E{Key: f.name, Value: child})
	}
	return d, nil
}

func fillList(v value, under string, depth int) (any, error) {
	a := bson.A{}
	if under == "$mod" {
		return bson.A{int32(2), int32(0)}, nil
	}
	if len(v.items) == 0 && (under == "$and" || under == "$or" || under == "$nor") {
		return nil, fmt.Errorf("%s has no branches", under)
	}
	for _, item := range v.items {
		child, err := fill(item, under, depth+1)
		if err != nil {
			return nil, err
		}
		a = append(a, child)
	}
	return a, nil
}

// operators are those for whose values placeholders can stand.
var operators = map[string]bool{
	"$and": true, "$or": true, "$nor": true, "$not": true, "$eq": true, "$ne": true, "$gt": true, "$gte": true, "$lt": true, "$lte": true, "$in": true, "$nin": true,
	"$all": true, "$elemMatch": true, "$exists": true, "$size": true, "$type": true, "$regex": true, "$options": true, "$mod": true,
}

// stand returns what stands for a value. Lower bounds are below upper bounds, so that no range is empty.
func stand(under string) (any, error) {
	switch under {
	case "$and", "$or", "$nor":
		return nil, fmt.Errorf("%s has values where conditions are expected", under)
	case "$gt", "$gte", "$size":
		return int32(1), nil
	case "$lt", "$lte":
		return int32(2), nil
	case "$exists":
		return true, nil
	case "$type":
		return "string", nil
	case "$regex":
		return "x", nil
	case "$options":
		return "", nil
	case "_id":
		return bson.ObjectID{}, nil
	}
	return "", nil
}
