package sniff

import (
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
	"tidemark/sniff/reqstat"
)

// codeKey is an error number of a shape.
type codeKey struct {
	itemKey
	code int32
}

// code returns the item of an error number of a shape, one of whose items is given; nil when there is no room.
func (n *Items) code(of itemKey, one *Item, code int32) *Item {
	key := codeKey{of, code}
	if known := n.codes[key]; known != nil || len(n.codes) >= maxCodeItems {
		return known
	}
	text := reqstat.OtherName
	if code != reqstat.OtherCode {
		text = strconv.Itoa(int(code))
	}
	at, _ := slices.BinarySearchFunc(one.Labels, "code", func(l model.Label, name string) int { return strings.Compare(l.Name, name) })
	item := n.item(one.Key[:strings.LastIndexByte(one.Key, ',')]+",errors."+text+"]", of.shape.Namespace()+" "+of.shape.Command+": errors "+text, errorQuantity,
		slices.Insert(slices.Clone(one.Labels), at, model.Label{Name: "code", Value: text}))
	n.codes[key] = &item
	return &item
}
