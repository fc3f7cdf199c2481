package rest

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
)

// PeopleRoutes returns only the routes of sign-in, users, tokens and the audit log, for an interface that has nothing but Access.
func (a *API) PeopleRoutes() []api.Route { return a.peopleRoutes() }

// peopleRoutes are the routes of sign-in and of one's own account, and those by which administrators look after users.
func (a *API) peopleRoutes() []api.Route {
	if a.options.Access == nil {
		return nil
	}
	return append([]api.Route{
		{
			Method: http.MethodPost, Pattern: "/api/login", Permission: api.Public, Handler: http.HandlerFunc(a.login),
			Doc: &api.Doc{Summary: "Signs in with a password; the answer sets the session's cookie.", Body: Login{}, Answer: Me{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/first", Permission: api.Public, Handler: http.HandlerFunc(a.first),
			Doc: &api.Doc{Summary: "Makes the first administrator with the key of the one-time link, and signs in.", Body: FirstAdministrator{}, Answer: Me{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/logout", Permission: api.Public, Handler: http.HandlerFunc(a.logout),
			Doc: &api.Doc{Summary: "Ends the session.", Answer: struct{}{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/me", Permission: api.View, PerHost: true, Handler: api.JSON(a.me),
			Doc: &api.Doc{Summary: "Who you are and what you may do.", Answer: Me{}},
		},
		{
			Method: http.MethodPut, Pattern: "/api/me/password", Permission: api.View, PerHost: true, Handler: api.JSON(a.changePassword),
			Doc: &api.Doc{Summary: "Changes your own password and ends your other sessions.", Body: OwnPassword{}, Answer: struct{}{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/me/tokens", Permission: api.View, PerHost: true, Handler: api.JSON(a.ownTokens),
			Doc: &api.Doc{Summary: "Your own tokens.", Answer: TokenList{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/me/tokens", Permission: api.View, PerHost: true, Handler: api.JSON(a.makeOwnToken),
			Doc: &api.Doc{Summary: "Makes a token of your own; needs a session.", Body: NewToken{}, Answer: MadeToken{}},
		},
		{
			Method: http.MethodDelete, Pattern: "/api/me/tokens/{id}", Permission: api.View, PerHost: true, Handler: api.JSON(a.revokeOwnToken),
			Doc: &api.Doc{Summary: "Revokes a token of your own; needs a session.", Answer: struct{}{}, Params: []api.Param{paramID}},
		},
	}, a.userRoutes()...)
}

var paramID = api.Param{Name: "id", Type: "string", About: "The id, decimal.", Required: true}

// accessError gives what a caller did wrong the form of an answer.
func accessError(err error) error {
	var limited *access.LimitedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return &api.Error{Status: http.StatusTooManyRequests, Code: "limited", Message: err.Error()}
	case errors.Is(err, access.ErrUnknown):
		return &api.Error{Status: http.StatusUnauthorized, Code: "unauthorized", Message: err.Error()}
	case errors.Is(err, access.ErrRefused):
		return &api.Error{Status: http.StatusForbidden, Code: "refused", Message: err.Error()}
	case errors.Is(err, access.ErrInvalid):
		return &api.Error{Status: http.StatusUnprocessableEntity, Code: "invalid", Message: err.Error()}
	case errors.Is(err, access.ErrNotFound):
		return api.NotFound(err.Error())
	}
	return err
}

func clientOf(r *http.Request) access.Client {
	return access.Client{Address: r.RemoteAddr, Agent: r.UserAgent()}
}

// sameSite refuses a sign-in that another site's page sends: it would sign a person in as somebody else.
func sameSite(r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return &api.Error{Status: http.StatusForbidden, Code: "foreign_origin", Message: "the request was made by a page of another site"}
	}
	return nil
}

func (a *API) login(w http.ResponseWriter, r *http.Request) {
	var body Login
	err := errors.Join(sameSite(r), decodeBody(r, &body))
	var session string
	if err == nil {
		session, err = a.options.Access.Login(r.Context(), body.Name, body.Password, clientOf(r))
	}
	a.signedIn(w, r, session, err)
}

func (a *API) first(w http.ResponseWriter, r *http.Request) {
	var body FirstAdministrator
	err := errors.Join(sameSite(r), decodeBody(r, &body))
	var session string
	if err == nil {
		session, err = a.options.Access.First(r.Context(), body.Key, body.Name, body.Password, clientOf(r))
	}
	a.signedIn(w, r, session, err)
}

// sessionCookieAge is how long a browser keeps the cookie; the server ends the session earlier when it is not used.
const sessionCookieAge = 30 * 24 * time.Hour

// signedIn answers a sign-in with the cookie of the new session and who it is.
func (a *API) signedIn(w http.ResponseWriter, r *http.Request, session string, err error) {
	var who *access.Identity
	if err == nil {
		who, err = a.options.Access.Identify(access.Credentials{Session: session})
	}
	if err != nil {
		var limited *access.LimitedError
		if errors.As(err, &limited) {
			w.Header().Set("Retry-After", fmt.Sprint(int(limited.After.Seconds())+1))
		}
		api.WriteError(w, accessError(err))
		return
	}
	setCookie(w, r, session, int(sessionCookieAge.Seconds()))
	api.WriteJSON(w, http.StatusOK, a.formatMe(who))
}

func setCookie(w http.ResponseWriter, r *http.Request, session string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: api.SessionCookie, Value: session, Path: "/", MaxAge: age, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}

func (a *API) logout(w http.ResponseWriter, r *http.Request) {
	err := sameSite(r)
	if c, cookieErr := r.Cookie(api.SessionCookie); err == nil && cookieErr == nil {
		err = a.options.Access.Logout(r.Context(), c.Value)
	}
	if err != nil {
		api.WriteError(w, accessError(err))
		return
	}
	setCookie(w, r, "", -1)
	api.WriteJSON(w, http.StatusOK, struct{}{})
}

func (a *API) formatMe(who *access.Identity) Me {
	me := Me{Name: who.Name, Role: who.MostRole().String(), AllHosts: who.SeesAllHosts(), Via: string(who.Via), Trapper: a.options.Trapper, First: !a.options.Access.HasAdministrator() && !a.options.Access.ReadOnly()}
	if who.User != 0 {
		me.ID = formatID(who.User)
	}
	return me
}

func (a *API) me(r *http.Request) (any, error) { return a.formatMe(access.From(r.Context())), nil }

// signedInUser returns the user whose session sent the request. A token must not make tokens: revoking it would not end what it made.
func signedInUser(r *http.Request) (*access.Identity, error) {
	who := access.From(r.Context())
	if who == nil || who.User == 0 || who.Via != access.ViaSession {
		return nil, &api.Error{Status: http.StatusForbidden, Code: "denied", Message: "this is for users who signed in with their password"}
	}
	return who, nil
}

// record writes a change to one's own account into the audit log; routes that need no more than View are not recorded of themselves.
func (a *API) record(r *http.Request, who *access.Identity, object string, before, after any) {
	ctx, changes := access.WithChanges(r.Context())
	access.Changed(ctx, object, before, after)
	a.options.Access.Audit(ctx, who, changes.Entry(r.Pattern, r.RemoteAddr))
}

func (a *API) changePassword(r *http.Request) (any, error) {
	who, err := signedInUser(r)
	if err != nil {
		return nil, err
	}
	var body OwnPassword
	if err := decodeBody(r, &body); err != nil {
		return nil, err
	}
	if err := a.options.Access.ChangePassword(r.Context(), who, body.Old, body.New, r.RemoteAddr); err != nil {
		return nil, accessError(err)
	}
	a.record(r, who, "password of user "+who.Name, nil, nil)
	return struct{}{}, nil
}

func (a *API) ownTokens(r *http.Request) (any, error) {
	who := access.From(r.Context())
	if who == nil || who.User == 0 {
		return TokenList{Tokens: []Token{}}, nil
	}
	return a.formatTokens(a.options.Access.Tokens(who.User)), nil
}

func (a *API) formatTokens(tokens []model.Token) TokenList {
	list := TokenList{Tokens: make([]Token, 0, len(tokens))}
	for i := range tokens {
		list.Tokens = append(list.Tokens, a.formatToken(&tokens[i]))
	}
	return list
}

func (a *API) formatToken(t *model.Token) Token {
	u, _ := a.options.Access.User(t.User)
	return Token{
		ID: formatID(t.ID), Name: t.Name, User: u.Name, Role: t.Role.String(), CreatedAt: floorMillis(t.CreatedAt),
		ExpiresAt: optionalMillis(t.ExpiresAt), UsedAt: optionalMillis(t.UsedAt),
	}
}

func (a *API) makeOwnToken(r *http.Request) (any, error) {
	who, err := signedInUser(r)
	if err != nil {
		return nil, err
	}
	var body NewToken
	if err := decodeBody(r, &body); err != nil {
		return nil, err
	}
	if body.User != "" {
		return nil, api.BadRequest("user is given, but this makes a token of your own; administrators make those of others with POST /api/tokens")
	}
	made, err := a.makeToken(r, who.User, body)
	if err == nil {
		a.record(r, who, "token "+made.Name, nil, made.Token)
	}
	return made, err
}

// makeToken makes a token of a user.
func (a *API) makeToken(r *http.Request, user model.UserID, body NewToken) (*MadeToken, error) {
	t := model.Token{User: user, Name: body.Name, Role: model.Viewer}
	if body.Role != "" {
		var ok bool
		if t.Role, ok = model.ParseRole(body.Role); !ok {
			return nil, badRole(body.Role)
		}
	}
	if body.ExpiresAt < 0 || body.ExpiresAt > maxMillis {
		return nil, api.BadRequest(fmt.Sprintf("expires_at is %d, expected Unix milliseconds, or 0 for never", body.ExpiresAt))
	}
	t.ExpiresAt = body.ExpiresAt * 1e6
	text, err := a.options.Access.NewToken(r.Context(), &t)
	if err != nil {
		return nil, accessError(err)
	}
	return &MadeToken{Token: a.formatToken(&t), Text: text}, nil
}

func badRole(name string) error {
	return api.BadRequest(fmt.Sprintf("role is %.40q, expected viewer, operator, editor or administrator", name))
}

func (a *API) revokeOwnToken(r *http.Request) (any, error) {
	who, err := signedInUser(r)
	if err != nil {
		return nil, err
	}
	t, err := a.revoke(r, who.User)
	if err == nil {
		a.record(r, who, "token "+t.Name, a.formatToken(&t), nil)
	}
	return struct{}{}, err
}

// revoke deletes the token in the address; with a user only one of theirs.
func (a *API) revoke(r *http.Request, of model.UserID) (model.Token, error) {
	id, err := parseID("the token's id", r.PathValue("id"))
	if err != nil {
		return model.Token{}, err
	}
	t, err := a.options.Access.DeleteToken(r.Context(), id, of)
	return t, accessError(err)
}
