package preproc

import "errors"

// Scripts runs JavaScript. Run returns the text that a script yields for a value, or nil without an error when it yields none; it
// ends within limits that it sets.
type Scripts interface {
	Run(source string, value []byte) ([]byte, error)
}

func compileScript(source string, scripts Scripts) (stepFunc, error) {
	switch {
	case source == "":
		return nil, errors.New("the script is empty")
	case scripts == nil:
		return nil, errors.New("scripts are switched off on this server")
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		out, err := scripts.Run(source, in.bytes())
		if err == nil && out == nil {
			return value{}, errDiscard
		}
		return textValue(cutTo(out)), err
	}, nil
}
