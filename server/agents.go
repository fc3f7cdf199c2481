package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"tidemark/collect/keyring"
	"tidemark/collect/poller"
	"tidemark/collect/trapper"
	"tidemark/collect/zbxagent"
	"tidemark/confdb"
)

// agentAccess is how agents and senders are let in and connected to: by the TLS settings of their hosts.
type agentAccess struct {
	db   *confdb.DB
	keys *keyring.Keyring
	// certificates are the server's own certificate and the authorities of agents; nil for none.
	certificates *tls.Config
	logger       *slog.Logger

	// refreshing is held from reading the settings until they are in force, so that older ones are not put over newer ones.
	refreshing sync.Mutex
}

// openAgentAccess reads the TLS settings of all hosts.
func openAgentAccess(ctx context.Context, db *confdb.DB, certificates *tls.Config, logger *slog.Logger) (*agentAccess, error) {
	a := &agentAccess{db: db, keys: keyring.New(nil), certificates: certificates, logger: logger}
	return a, a.refresh(ctx)
}

// refresh brings changed TLS settings into force; it belongs to every change of the configuration.
func (a *agentAccess) refresh(ctx context.Context) error {
	a.refreshing.Lock()
	defer a.refreshing.Unlock()
	list, err := a.db.HostTLS(ctx)
	var unreadable *confdb.UnreadableError
	if err != nil && !errors.As(err, &unreadable) {
		return fmt.Errorf("read the TLS settings of hosts: %w", err)
	}
	if unreadable != nil {
		// The server starts all the same; hosts without their keys are closed, not open.
		a.logger.Error("hosts with pre-shared keys are closed until their keys are set again", "error", err)
	}
	a.keys.Apply(list)
	return nil
}

// trapperTLS is how the trapper serves connections that start with TLS.
func (a *agentAccess) trapperTLS() *trapper.TLS {
	t := &trapper.TLS{Keys: a.keys}
	if a.certificates != nil {
		c := a.certificates.Clone()
		c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, c.RootCAs, true
		t.Certificates = c
	}
	return t
}

// kinds are the checks of agents for the poller.
func (a *agentAccess) kinds() []poller.Kind {
	return []poller.Kind{zbxagent.New(zbxagent.Options{Access: a.keys, Certificates: a.certificates}).Kind()}
}
