package confdb

import (
	"encoding/json"
	"fmt"

	"tidemark/model"
)

// Lists that are only ever read and written whole are one JSON column each; the empty list is ''. Short names, because
// there is one such text per item.

type packedStep struct {
	Type   model.StepType `json:"t"`
	Params []string       `json:"p,omitempty"`
	OnFail model.OnFail   `json:"f,omitempty"`
	Value  string         `json:"v,omitempty"`
}

type packedMacro struct {
	Name   string `json:"n"`
	Value  string `json:"v"`
	Secret bool   `json:"s,omitempty"`
	// Description is kept for people; no part of the program reads it.
	Description string `json:"d,omitempty"`
}

// pack encodes a list; an empty one is "".
func pack[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("confdb: pack %T: %v", list, err)) // only strings and numbers are packed
	}
	return string(b)
}

// unpack decodes what pack made.
func unpack[T any](text string) ([]T, error) {
	if text == "" {
		return nil, nil
	}
	var list []T
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("column of %T: %w", list, err)
	}
	return list, nil
}

func packTags(tags []model.Tag) string {
	list := make([][2]string, len(tags))
	for i, t := range tags {
		list[i] = [2]string{t.Name, t.Value}
	}
	return pack(list)
}

func unpackTags(text string) ([]model.Tag, error) {
	list, err := unpack[[2]string](text)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	tags := make([]model.Tag, len(list))
	for i, t := range list {
		tags[i] = model.Tag{Name: t[0], Value: t[1]}
	}
	return tags, nil
}

func unpackSteps(text string) ([]model.Step, error) {
	list, err := unpack[packedStep](text)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	steps := make([]model.Step, len(list))
	for i, s := range list {
		steps[i] = model.Step{Type: s.Type, Params: s.Params, OnFail: s.OnFail, FailValue: s.Value}
	}
	return steps, nil
}

// unpackMacros decodes a list of macros and opens the values of secret ones.
func (s *sealer) unpackMacros(text string) ([]model.Macro, error) {
	list, err := unpack[packedMacro](text)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	macros := make([]model.Macro, len(list))
	for i, m := range list {
		macros[i] = model.Macro{Name: m.Name, Value: m.Value, Secret: m.Secret}
		if m.Secret {
			macros[i].Value = s.shown(m.Value, macroPlace(m.Name))
		}
	}
	return macros, nil
}
