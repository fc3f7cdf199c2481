package preproc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tidemark/model"
)

// stepFunc runs one step. in belongs to the step until it returns; the result may be a part of it.
type stepFunc = func(m *memory, in value, at int64) (value, error)

// stepNames are the names of the steps in messages.
var stepNames = map[model.StepType]string{
	model.StepMultiplier: "multiplier", model.StepRightTrim: "right trim", model.StepLeftTrim: "left trim", model.StepTrim: "trim",
	model.StepRegex: "regular expression", model.StepBoolToDecimal: "boolean to decimal", model.StepOctalToDecimal: "octal to decimal",
	model.StepHexToDecimal: "hexadecimal to decimal", model.StepSimpleChange: "simple change", model.StepChangePerSecond: "change per second",
	model.StepXMLPath: "XML XPath", model.StepJSONPath: "JSONPath", model.StepInRange: "in range",
	model.StepMatchesRegex: "matches regular expression", model.StepNotMatchesRegex: "does not match regular expression",
	model.StepCheckJSONError: "check for error in JSON", model.StepCheckXMLError: "check for error in XML",
	model.StepCheckRegexError: "check for error using regular expression", model.StepDiscardUnchanged: "discard unchanged",
	model.StepDiscardHeartbeat: "discard unchanged with heartbeat", model.StepJavaScript: "JavaScript",
	model.StepPrometheusPattern: "Prometheus pattern", model.StepPrometheusToJSON: "Prometheus to JSON", model.StepCSVToJSON: "CSV to JSON",
	model.StepReplace: "replace", model.StepCheckUnsupported: "check for not supported value", model.StepXMLToJSON: "XML to JSON",
	model.StepSNMPWalkValue: "SNMP walk value", model.StepSNMPWalkToJSON: "SNMP walk to JSON", model.StepSNMPGetValue: "SNMP get value",
}

func stepName(t model.StepType) string {
	if n, ok := stepNames[t]; ok {
		return n
	}
	return "step type " + strconv.Itoa(int(t))
}

// param returns parameter i of a step, or "".
func param(s model.Step, i int) string {
	if i < len(s.Params) {
		return s.Params[i]
	}
	return ""
}

// compileStep makes a step ready to run for an item of type vt.
func compileStep(s model.Step, vt model.ValueType) (stepFunc, error) {
	switch s.Type {
	case model.StepMultiplier:
		return compileMultiplier(param(s, 0), vt)
	case model.StepRightTrim, model.StepLeftTrim, model.StepTrim:
		return compileTrim(s.Type, unescape(param(s, 0))), nil
	case model.StepReplace:
		return compileReplace(unescape(param(s, 0)), unescape(param(s, 1)))
	case model.StepRegex, model.StepMatchesRegex, model.StepNotMatchesRegex, model.StepCheckRegexError:
		return compileRegexStep(s)
	case model.StepBoolToDecimal:
		return boolToDecimal, nil
	case model.StepOctalToDecimal:
		return radixToDecimal(8), nil
	case model.StepHexToDecimal:
		return radixToDecimal(16), nil
	case model.StepSimpleChange:
		return compileSimpleChange(vt), nil
	case model.StepChangePerSecond:
		return compileChangePerSecond(vt), nil
	case model.StepInRange:
		return compileInRange(param(s, 0), param(s, 1))
	case model.StepDiscardUnchanged:
		return discardUnchanged, nil
	case model.StepDiscardHeartbeat:
		return compileHeartbeat(param(s, 0))
	}
	return compileDocumentStep(s)
}

// compileDocumentStep makes a step ready that reads a document.
func compileDocumentStep(s model.Step) (stepFunc, error) {
	switch s.Type {
	case model.StepJSONPath:
		return compileJSONPath(param(s, 0))
	case model.StepCheckJSONError:
		return compileCheckJSON(param(s, 0))
	case model.StepXMLPath:
		return compileXPath(param(s, 0))
	case model.StepCheckXMLError:
		return compileCheckXML(param(s, 0))
	case model.StepXMLToJSON:
		return xmlToJSON, nil
	case model.StepPrometheusPattern:
		return compilePrometheusPattern(s)
	case model.StepPrometheusToJSON:
		return compilePrometheusToJSON(param(s, 0))
	case model.StepCSVToJSON:
		return compileCSVToJSON(s)
	case model.StepSNMPWalkValue:
		return compileWalkValue(s)
	case model.StepSNMPWalkToJSON:
		return compileWalkToJSON(s)
	case model.StepSNMPGetValue:
		return compileGetValue(s)
	}
	return nil, fmt.Errorf("%s is not known", stepName(s.Type))
}

var escapes = strings.NewReplacer(`\\`, `\`, `\s`, " ", `\r`, "\r", `\n`, "\n", `\t`, "\t")

// unescape expands \s \r \n \t \\ in parameters of trim and replace.
func unescape(s string) string { return escapes.Replace(s) }

func compileTrim(t model.StepType, set string) stepFunc {
	return func(_ *memory, in value, _ int64) (value, error) {
		text := in.bytes()
		if t != model.StepRightTrim {
			text = bytes.TrimLeft(text, set)
		}
		if t != model.StepLeftTrim {
			text = bytes.TrimRight(text, set)
		}
		return textValue(text), nil
	}
}

func compileReplace(from, to string) (stepFunc, error) {
	if from == "" {
		return nil, errors.New("the text to search for is empty")
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		text := in.bytes()
		if n := bytes.Count(text, []byte(from)); len(text)+n*(len(to)-len(from)) > maxStepBytes {
			return value{}, tooLarge("result")
		}
		return textValue(bytes.ReplaceAll(text, []byte(from), []byte(to))), nil
	}, nil
}

// maxStepBytes bounds what a step may yield; later steps and the item's type cut further.
const maxStepBytes = 16 << 20

func cutTo(text []byte) []byte {
	if len(text) > maxStepBytes {
		return cutUTF8(text, maxStepBytes)
	}
	return text
}
