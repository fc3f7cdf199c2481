package preproc

import (
	"fmt"
	"strings"

	"tidemark/wire/exposition"
	"tidemark/wire/jsonpath"
	"tidemark/wire/xmlpath"
)

// parsed keeps what steps made of one text, so that the many items that depend on one master item parse its value once. It
// belongs to one goroutine.
type parsed struct {
	json     *jsonpath.Document
	jsonErr  error
	page     *exposition.Page
	pageErr  error
	walk     *walk
	walkErr  error
	xml      *xmlpath.Document
	xmlErr   error
	prepared uint8
}

const (
	preparedJSON = 1 << iota
	preparedPage
	preparedWalk
	preparedXML
)

// needs reports whether something is to be made still, and notes that it now is.
func (p *parsed) needs(what uint8) bool {
	was := p.prepared&what != 0
	p.prepared |= what
	return !was
}

// cache returns where to keep what is made of the value; without dependent items that is nowhere.
func (v value) cache() *parsed {
	if v.parsed != nil {
		return v.parsed
	}
	return &parsed{}
}

func (v value) asJSON() (*jsonpath.Document, error) {
	c := v.cache()
	if c.needs(preparedJSON) {
		c.json, c.jsonErr = jsonpath.Parse(v.bytes())
	}
	return c.json, c.jsonErr
}

func (v value) asPage() (*exposition.Page, error) {
	c := v.cache()
	if c.needs(preparedPage) {
		c.page, c.pageErr = exposition.Parse(v.bytes())
	}
	return c.page, c.pageErr
}

func (v value) asWalk() (*walk, error) {
	c := v.cache()
	if c.needs(preparedWalk) {
		c.walk, c.walkErr = parseWalk(string(v.bytes()))
	}
	return c.walk, c.walkErr
}

func (v value) asXML() (*xmlpath.Document, error) {
	c := v.cache()
	if c.needs(preparedXML) {
		c.xml, c.xmlErr = xmlpath.Parse(v.bytes())
	}
	return c.xml, c.xmlErr
}

func compileJSONPath(source string) (stepFunc, error) {
	path, err := jsonpath.Compile(source)
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		document, err := in.asJSON()
		if err != nil {
			return value{}, err
		}
		text, found, err := document.Query(path)
		if err != nil {
			return value{}, err
		}
		if !found {
			return value{}, fmt.Errorf("no data matches the JSONPath %q", source)
		}
		return textValue(text), nil
	}, nil
}

// compileCheckJSON makes the text at the path the item's error; a document that does not parse passes, as in Zabbix.
func compileCheckJSON(source string) (stepFunc, error) {
	path, err := jsonpath.Compile(source)
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		document, err := in.asJSON()
		if err != nil {
			return in, nil
		}
		text, found, err := document.Query(path)
		if err != nil || !found || strings.TrimSpace(string(text)) == "" {
			return in, nil
		}
		return value{}, errVerbatim(text)
	}, nil
}

func compileXPath(source string) (stepFunc, error) {
	path, err := xmlpath.Compile(source)
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		document, err := in.asXML()
		if err != nil {
			return value{}, err
		}
		text, err := document.Query(path)
		return textValue(text), err
	}, nil
}

// compileCheckXML makes the text that the path finds the item's error; a document that does not parse passes, as in Zabbix.
func compileCheckXML(source string) (stepFunc, error) {
	path, err := xmlpath.Compile(source)
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		document, err := in.asXML()
		if err != nil {
			return in, nil
		}
		text, err := document.Query(path)
		if err != nil || strings.TrimSpace(string(text)) == "" {
			return in, nil
		}
		return value{}, errVerbatim(strings.TrimSpace(string(text)))
	}, nil
}

func xmlToJSON(_ *memory, in value, _ int64) (value, error) {
	document, err := in.asXML()
	if err != nil {
		return value{}, err
	}
	return textValue(document.JSON()), nil
}
