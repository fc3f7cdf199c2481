package zabbix

import (
	"errors"
	"net/http"
	"strings"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
)

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// bearer returns the token in a request's header.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// identify finds who calls, by the text in auth, else by the header. Cookies are not looked at, so that no page can call with them.
func (a *API) identify(r *http.Request, auth string) (*access.Identity, error) {
	sent := api.Credentials(r)
	if auth != "" {
		sent.Token = auth
	}
	if sent.Token == "" {
		who, err := a.options.Access.Identify(access.Credentials{Loopback: sent.Loopback})
		if err != nil {
			return nil, errNobody
		}
		return who, nil
	}
	return a.identifyToken(sent.Token)
}

// identifyToken finds whose a text is: that of a token or of a session.
func (a *API) identifyToken(text string) (*access.Identity, error) {
	if who, err := a.options.Access.Identify(access.Credentials{Session: text}); err == nil {
		return who, nil
	}
	who, err := a.options.Access.Identify(access.Credentials{Token: text})
	if err != nil {
		return nil, errTerminated
	}
	return who, nil
}

func apiVersion(c *call) ([]byte, error) {
	if err := c.done(); err != nil {
		return nil, err
	}
	return []byte(`"` + Version + `"`), nil
}

// login begins a session and answers its text.
func login(c *call) ([]byte, error) {
	name, password := c.text("username"), c.text("password")
	if name == "" {
		name = c.text("user")
	}
	withUser := c.flag("userData")
	if err := c.done(); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, invalidParams(`Invalid parameter "/": the parameter "username" is missing.`)
	}
	session, err := c.options.Access.Login(c.ctx, name, password, access.Client{Address: c.r.RemoteAddr, Agent: c.r.UserAgent()})
	var limited *access.LimitedError
	switch {
	case errors.As(err, &limited):
		return nil, applicationError(err.Error())
	case access.IsOwnError(err):
		return nil, applicationError("Incorrect user name or password or account is temporarily blocked.")
	case err != nil:
		return nil, err
	}
	if !withUser {
		return encodeJSON(session)
	}
	who, err := c.identifyToken(session)
	if err != nil {
		return nil, err
	}
	return encodeJSON(userData(who, session))
}

func userData(who *access.Identity, session string) map[string]string {
	return map[string]string{
		"userid": formatID(who.User), "username": who.Name, "name": "", "surname": "", "type": userType(who.Role), "roleid": formatInt(int(who.Role)), "sessionid": session,
	}
}

// userType is Zabbix's type of user: 1 user, 2 admin, 3 super admin.
func userType(r model.Role) string {
	switch {
	case r >= model.Administrator:
		return "3"
	case r >= model.Editor:
		return "2"
	}
	return "1"
}

func logout(c *call) ([]byte, error) {
	if err := c.done(); err != nil {
		return nil, err
	}
	if c.who.Via != access.ViaSession {
		return nil, applicationError("Cannot log out: this is a token and no session. Revoke it on the page, or with tidemark token.")
	}
	if err := c.options.Access.Logout(c.ctx, c.token); err != nil {
		return nil, err
	}
	return []byte("true"), nil
}

// checkAuthentication answers whose a session or token is.
func checkAuthentication(c *call) ([]byte, error) {
	session, token := c.text("sessionid"), c.text("token")
	c.accept("extend", "secret")
	if err := c.done(); err != nil {
		return nil, err
	}
	if (session == "") == (token == "") {
		return nil, invalidParams("Session ID or token is expected.")
	}
	who, err := c.identifyToken(cmpOr(session, token))
	if err != nil {
		return nil, err
	}
	return encodeJSON(userData(who, session))
}
