// A minimal sidecar next to a proxy: golang-jwt behind net/http, with or without a cache of verified tokens.
package main

import (
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/golang-jwt/jwt"
)

type claims struct {
	jwt.RegisteredClaims
	Client string `json:"azp"`
	Scope  string `json:"scope"`
}

func main() {
	pem, _ := os.ReadFile(os.Getenv("TOKEN_KEY"))
	key, err := jwt.ParseRSAPublicKeyFromPEM(pem)
	if err != nil {
		panic(err)
	}
	parser := &jwt.Parser{ValidMethods: []string{"RS256"}}
	find := func(*jwt.Token) (interface{}, error) { return key, nil }
	issuer, audience := os.Getenv("ISSUER"), os.Getenv("AUDIENCE")
	cached := os.Getenv("CACHE") == "on"
	var cache sync.Map
	decide := func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		var found *claims
		if known, ok := cache.Load(token); cached && ok && known.(*claims).Valid() == nil {
			found = known.(*claims)
		} else {
			found = &claims{}
			_, err := parser.ParseWithClaims(token, found, find)
			if err != nil || !found.VerifyIssuer(issuer, true) || !found.VerifyAudience(audience, true) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if cached {
				cache.Store(token, found)
			}
		}
		header := w.Header()
		header.Set("X-Auth-Subject", found.Subject)
		header.Set("X-Auth-Client", found.Client)
		header.Set("X-Auth-Scope", found.Scope)
		header.Set("X-Auth-Issuer", found.Issuer)
		w.WriteHeader(http.StatusOK)
	}
	http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(decide))
}
