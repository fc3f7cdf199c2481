package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"tidemark/alert"
	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/model"
)

// ApplyAlertsOffline puts alerting objects, in YAML or JSON, into the data folder of a server that does not run. They are checked as a running
// server does; nothing is taken of a text that has a mistake. A folder in use is ErrInUse.
func ApplyAlertsOffline(ctx context.Context, data string, text []byte, replace bool, logger *slog.Logger) (err error) {
	config, err := alert.Parse(text)
	if err != nil {
		return err
	}
	fsys := vfs.OS{}
	if _, err := fsys.Stat(data); err != nil {
		return fmt.Errorf("the data folder %s: %w; check the name", data, err)
	}
	lock, err := lockFolder(fsys, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	db, err := confdb.Open(ctx, data, confdb.Options{Logger: logger})
	if err != nil {
		return fmt.Errorf("open the configuration: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	a, err := alert.Open(ctx, alert.Options{
		Store: db, Objects: nothing{}, Problems: nothing{}, Names: nothing{}, ScriptFolder: filepath.Join(data, scriptFolder), Logger: logger,
	})
	if err != nil {
		return fmt.Errorf("open alerting: %w", err)
	}
	return a.Apply(ctx, config, replace)
}

// nothing stands for definitions and problems where no event is handled.
type nothing struct{}

// TriggerByID implements alert.Objects.
func (nothing) TriggerByID(model.TriggerID) (*model.Trigger, bool) { return nil, false }

// HostByID implements alert.Objects.
func (nothing) HostByID(model.HostID) (*model.Host, bool) { return nil, false }

// Template implements alert.Objects.
func (nothing) Template(model.TemplateID) string { return "" }

// UserMacro implements alert.Objects.
func (nothing) UserMacro(model.HostID, string) (string, bool) { return "", false }

// AddTags implements alert.Problems.
func (nothing) AddTags(model.EventID, []model.Tag) {}

// Problem implements alert.Problems.
func (nothing) Problem(model.EventID) (model.Problem, bool) { return model.Problem{}, false }

// State implements alert.Problems.
func (nothing) State(model.TriggerID) (model.TriggerState, bool) { return model.TriggerState{}, false }

// Macros implements alert.Names.
func (nothing) Macros(context.Context, *model.Event) func(string) string {
	return func(macro string) string { return macro }
}
