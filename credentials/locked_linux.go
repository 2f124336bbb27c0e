package credentials

import (
	ss "github.com/zalando/go-keyring/secret_service"
)

// unlocked reports whether the keyring gives what it holds without asking its
// user.
func unlocked() bool {
	if !hasBus() {
		return false
	}
	s, err := ss.NewSecretService()
	if err != nil {
		return false
	}
	locked, err := s.GetLoginCollection().GetProperty("org.freedesktop.Secret.Collection.Locked")
	is, known := locked.Value().(bool)
	return err == nil && known && !is
}
